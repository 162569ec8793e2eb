package api_test

import (
	"strings"
	"testing"
)

// What a lane's windows are reads back, holds what waits with a reason, and is refused where it could never open.
func TestLanesHaveWindows(t *testing.T) {
	s := newStage(t)
	lane := s.want(s.call("POST", "/v1/lanes", s.acme, map[string]any{
		"name": "night", "kind": "io", "open_windows": []any{map[string]any{"cron": "0 0 1 1 *", "duration_seconds": 1}},
	}), 201, "")
	window := lane.rows("open_windows")[0]
	if window.str("cron") != "0 0 1 1 *" || window.str("timezone") != "UTC" || window.num("duration_seconds") != 1 {
		t.Errorf("made with %s", lane.text)
	}
	task := s.submit(s.acme, map[string]any{"type": "a", "lane": "night"})
	w := s.register(s.acme, nil)
	if got := w.claim(5, 0); len(got) != 0 {
		t.Errorf("a closed lane starts %v", got)
	}
	why := s.want(s.call("GET", "/v1/tasks/"+task.str("id")+"/explain", s.acme, nil), 200, "").rows("blocked_by")
	if len(why) != 1 || why[0].str("reason") != "lane_closed" || !strings.Contains(why[0].str("detail"), "opens at 20") {
		t.Errorf("blocked by %v", why)
	}
	for at, windows := range map[string]string{
		"body.open_windows[0]":                  `[{"cron":"0 0 30 2 *","duration_seconds":60}]`,
		"body.open_windows[1].duration_seconds": `[{"cron":"@daily","duration_seconds":60},{"cron":"@daily","duration_seconds":0}]`,
		"body.open_windows[0].days":             `[{"cron":"@daily","duration_seconds":60,"days":1}]`,
	} {
		s.refused(s.call("PATCH", "/v1/lanes/night", s.acme, `{"open_windows":`+windows+`}`), at)
	}
	lane = s.want(s.call("PATCH", "/v1/lanes/night", s.acme, `{"open_windows":[]}`), 200, "")
	if len(lane.rows("open_windows")) != 0 {
		t.Errorf("without windows it is %s", lane.text)
	}
	if got := w.claim(5, 5); len(got) != 1 {
		t.Errorf("an open lane starts %v", got)
	}
}
