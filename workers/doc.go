// Package workers is the Go SDK for workers: processes that register what they
// can do, pull tasks over HTTPS, execute them and report how they ended.
//
//	w, err := workers.New(workers.Options{Server: url, ClientID: id, ClientSecret: secret, Name: "thumbs-1", Slots: 4})
//	workers.HandleTyped(w, "image.thumbnail", func(ctx context.Context, t *workers.Task, in Picture) (Thumbnail, error) { … })
//	err = w.Run(ctx)
//
// It promises that a finished result is sent again until the server accepts or
// refuses it, through restarts of the server and changes of its brain, as long
// as this process lives; that every lease held, a finished task's included, is
// renewed with each heartbeat; that a cancel, a lost lease and a hard timeout
// end the handler's context with the reason as its cause; and that SIGTERM
// drains: no more claims, what runs may finish, what does not is given back.
//
// It never executes a task without a lease, never decides about retries (the
// error's class does, at the server), and never reads the server's clock.
// Handlers run at least once: a side effect belongs behind the task's
// idempotency key.
package workers
