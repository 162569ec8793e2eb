// Command worker is a whole worker: it pulls tasks of type text.count and
// answers how many words a text has. Try it against a server:
//
//	NIGHTSHIFT_CLIENT=id:secret go run ./examples/worker http://127.0.0.1:8080
package main

import (
	"context"
	"log"
	"os"
	"strings"

	"nightshift/workers"
	"nightshift/workers/protocol"
)

type input struct {
	Text string `json:"text"`
}

type output struct {
	Words int `json:"words"`
}

func main() {
	id, secret, _ := strings.Cut(os.Getenv("NIGHTSHIFT_CLIENT"), ":")
	if len(os.Args) != 2 || secret == "" {
		log.Fatal("usage: NIGHTSHIFT_CLIENT=id:secret worker URL")
	}
	w, err := workers.New(workers.Options{Server: os.Args[1], ClientID: id, ClientSecret: secret, Name: "counter", Slots: 4})
	if err != nil {
		log.Fatal(err)
	}
	workers.HandleTyped(w, "text.count", func(_ context.Context, _ *workers.Task, in input) (output, error) {
		if in.Text == "" {
			return output{}, workers.Errorf(protocol.ClassInvalidInput, "there is no text to count")
		}
		return output{len(strings.Fields(in.Text))}, nil
	})
	if err := w.Run(context.Background()); err != nil { // until SIGTERM, then it drains
		log.Fatal(err)
	}
}
