// Command submit sends one task of type text.count and waits for its result.
// Start examples/worker beside it:
//
//	NIGHTSHIFT_CLIENT=id:secret go run ./examples/submit http://127.0.0.1:8080 "how many words are these"
//
// The key needs the scopes tasks:write and tasks:read.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
	"strings"
	"time"

	"nightshift/workers/client"
)

type task struct {
	ID     string          `json:"id"`
	State  string          `json:"state"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Class   string `json:"class"`
		Message string `json:"message"`
	} `json:"error"`
}

func main() {
	id, secret, _ := strings.Cut(os.Getenv("NIGHTSHIFT_CLIENT"), ":")
	if len(os.Args) != 3 || secret == "" {
		log.Fatal("usage: NIGHTSHIFT_CLIENT=id:secret submit URL TEXT")
	}
	c, err := client.New(client.Options{Server: os.Args[1], ClientID: id, ClientSecret: secret})
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var t task
	// With an idempotency key the call may be repeated until it is answered:
	// there will be one task.
	_, err = c.Persist(ctx, client.Call{
		Method: http.MethodPost, Path: "/v1/tasks", Out: &t,
		Headers: map[string]string{"Idempotency-Key": fmt.Sprintf("example-%d", time.Now().UnixNano())},
		In:      map[string]any{"type": "text.count", "payload": map[string]string{"text": os.Args[2]}},
	})
	if err != nil {
		log.Fatal(err)
	}
	for status := http.StatusAccepted; status == http.StatusAccepted; {
		status, err = c.Persist(ctx, client.Call{
			Method: http.MethodGet, Path: "/v1/tasks/" + t.ID + "/wait?timeout_seconds=20", Out: &t,
		})
		if err != nil {
			log.Fatal(err)
		}
	}
	if t.Error != nil {
		log.Fatalf("%s %s: %s: %s", t.ID, t.State, t.Error.Class, t.Error.Message)
	}
	fmt.Printf("%s %s %s\n", t.ID, t.State, t.Result)
}
