package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func simulated(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	code = run(context.Background(), append([]string{"simulate"}, args...), &o, &e)
	return code, o.String(), e.String()
}

const smallScenario = `
seed: 1
horizon: 10m
tenants: [{name: acorn}, {name: birch}]
workers: [{name: w, slots: 2}]
arrivals:
  - {tenant: acorn, backlog: 100, run: 2s}
  - {tenant: birch, backlog: 100, run: 2s}
`

func TestSimulateAsksWhatIf(t *testing.T) {
	dir := t.TempDir()
	path, svg := filepath.Join(dir, "small.yaml"), filepath.Join(dir, "small.svg")
	if err := os.WriteFile(path, []byte(smallScenario), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errs := simulated(t, path, "--what-if", "tenant.acorn.weight=3", "--svg", svg)
	if code != exitOK || !strings.Contains(out, "what if tenant.acorn.weight=3") || !strings.Contains(out, "75.") {
		t.Errorf("%d %s\n%s", code, errs, out)
	}
	if picture, err := os.ReadFile(svg); err != nil || !bytes.Contains(picture, []byte("<polyline")) {
		t.Errorf("%v %s", err, picture)
	}
	code, out, errs = simulated(t, path, "--json", "--seed", "9")
	if code != exitOK || !json.Valid([]byte(out)) {
		t.Errorf("%d %s\n%s", code, errs, out)
	}
}

func TestSimulateLivesThroughATrace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "requests.csv")
	text := "TIMESTAMP,ContextTokens,GeneratedTokens\n2030-01-01 00:00:00.0,2000,30\n2030-01-01 00:00:01.5,500,60\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errs := simulated(t, "--trace", path, "--slots", "1")
	if code != exitOK || !strings.Contains(out, "model requests, 2 tasks) on 1 slots") || !strings.Contains(out, "requests") {
		t.Errorf("%d %s\n%s", code, errs, out)
	}
}

func TestSimulateRefusesWhatMakesNoSense(t *testing.T) {
	small := filepath.Join(t.TempDir(), "small.yaml")
	if err := os.WriteFile(small, []byte(smallScenario), 0o600); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "bad.yaml")
	if err := os.WriteFile(path, []byte("tenants:\n  - {nam: x}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"line 2: there is no field \"nam\" here": {path},
		"name a scenario file":                   {},
		"no such file":                           {path + "x"},
		"there is no figure \"x\"":               {"--figures", "--only", "x"},
		"unknown flag":                           {"--wide"},
		"--slots goes with --trace alone":        {small, "--slots", "4"},
		"--quick goes with --figures alone":      {small, "--quick"},
		"--json goes with a scenario file":       {"--figures", "--only", "jain", "--json"},
		"no such file or directory":              {small, "--svg", filepath.Join(small+"-folder", "small.svg")},
		"no tenant \"oak\", only acorn, birch":   {small, "--what-if", "tenant.oak.weight=2"},
		"model requests (TIMESTAMP,":             {"--trace", small},
	} {
		code, _, errs := simulated(t, args...)
		if code != exitUsage || !strings.Contains(errs, want) {
			t.Errorf("%v: %d %q, want %q", args, code, errs, want)
		}
	}
}
