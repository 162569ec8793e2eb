package workertest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"nightshift/workers/protocol"
)

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/auth/token", s.token)
	mux.HandleFunc("POST /v1/workers", s.authorised("register", s.register))
	mux.HandleFunc("POST /v1/workers/{id}/claim", s.authorised("claim", s.claim))
	mux.HandleFunc("POST /v1/workers/{id}/heartbeat", s.authorised("heartbeat", s.heartbeat))
	mux.HandleFunc("POST /v1/workers/{id}/results", s.authorised("results", s.results))
	mux.HandleFunc("POST /v1/workers/{id}/drain", s.authorised("drain", s.goodbye))
	mux.HandleFunc("DELETE /v1/workers/{id}", s.authorised("delete", s.goodbye))
	mux.HandleFunc("POST /v1/tasks/{id}/{verb}", s.authorised("single", s.single))
	return mux
}

func refuse(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", protocol.ProblemContentType)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(protocol.Problem{Type: "about:blank", Title: code, Status: status, Code: code})
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func read(w http.ResponseWriter, r *http.Request, into any) bool {
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil && !errors.Is(err, io.EOF) {
		refuse(w, http.StatusUnprocessableEntity, "validation_failed")
		return false
	}
	return true
}

func (s *Server) token(w http.ResponseWriter, r *http.Request) {
	var in protocol.TokenRequest
	if !read(w, r, &in) {
		return
	}
	if in.GrantType != "client_credentials" || in.ClientID != ClientID || in.ClientSecret != ClientSecret {
		refuse(w, http.StatusUnauthorized, protocol.CodeInvalidClient)
		return
	}
	s.Lock()
	defer s.Unlock()
	s.calls["token"]++
	s.numbered++
	token := fmt.Sprintf("jwt-%d", s.numbered)
	s.tokens[token] = time.Now().Add(s.TokenLife)
	answer(w, http.StatusOK, protocol.TokenAnswer{
		AccessToken: token, TokenType: "Bearer", ExpiresIn: int(s.TokenLife / time.Second), Scope: "workers:register",
	})
}

// authorised checks token and then, but for a registration, the session.
func (s *Server) authorised(verb string, next func(http.ResponseWriter, *http.Request, *worker)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.Lock()
		defer s.Unlock()
		s.calls[verb]++
		s.changed.Broadcast()
		until, known := s.tokens[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
		if !known || time.Now().After(until) {
			refuse(w, http.StatusUnauthorized, protocol.CodeUnauthenticated)
			return
		}
		if len(s.answers) > 0 {
			status := s.answers[0]
			s.answers = s.answers[1:]
			refuse(w, status, "as_told")
			return
		}
		s.sweep()
		var who *worker
		if verb != "register" && verb != "single" { // the lease's token is enough there
			if who = s.who(w, r); who == nil {
				return
			}
		}
		next(w, r, who)
	}
}

func (s *Server) who(w http.ResponseWriter, r *http.Request) *worker {
	session := r.Header.Get(protocol.HeaderSession)
	for id, known := range s.workers {
		if known.session != session {
			continue
		}
		if path := r.PathValue("id"); strings.HasPrefix(path, "wrk_") && path != id {
			break
		}
		return known
	}
	if known := s.workers[r.PathValue("id")]; known != nil {
		refuse(w, http.StatusConflict, protocol.CodeSessionReplaced)
		return nil
	}
	refuse(w, http.StatusNotFound, protocol.CodeNotFound)
	return nil
}

func (s *Server) register(w http.ResponseWriter, r *http.Request, _ *worker) {
	var in protocol.RegisterRequest
	if !read(w, r, &in) {
		return
	}
	if in.Name == "" || in.InstanceID == "" {
		refuse(w, http.StatusUnprocessableEntity, "validation_failed")
		return
	}
	if s.conflict[in.InstanceID] {
		refuse(w, http.StatusConflict, protocol.CodeInstanceConflict)
		return
	}
	id := "wrk_" + in.InstanceID
	s.numbered++
	who := &worker{id: id, session: fmt.Sprintf("session-%d", s.numbered), registration: in, leaseSeconds: in.LeaseSeconds}
	if who.leaseSeconds == 0 {
		who.leaseSeconds = protocol.DefaultLeaseSeconds
	}
	s.workers[id] = who
	kept := map[string]bool{}
	for _, token := range in.Leases {
		kept[token] = true
	}
	for _, t := range s.tasks {
		if t.State != "running" || t.worker != id {
			continue
		}
		if !kept[t.token] {
			s.unlease(t, "ready")
			continue
		}
		t.Expires = time.Now().Add(time.Duration(who.leaseSeconds) * time.Second)
	}
	answer(w, http.StatusCreated, protocol.RegisterAnswer{
		WorkerID: id, Session: who.session, HeartbeatSeconds: float64(who.leaseSeconds) / 3,
		LeaseSeconds: who.leaseSeconds, ServerTime: protocol.At(time.Now()),
	})
}

func (s *Server) claim(w http.ResponseWriter, r *http.Request, who *worker) {
	var in protocol.ClaimRequest
	if !read(w, r, &in) {
		return
	}
	most, wait := 1, 0
	if in.MaxTasks != nil {
		most = *in.MaxTasks
	}
	if in.WaitSeconds != nil {
		wait = *in.WaitSeconds
	}
	if most < 1 || most > protocol.MaxClaimTasks || wait < 0 || wait > protocol.MaxWaitSeconds {
		refuse(w, http.StatusUnprocessableEntity, "validation_failed")
		return
	}
	until := time.Now().Add(time.Duration(wait) * time.Second)
	wake := time.AfterFunc(time.Until(until), func() { s.Lock(); s.changed.Broadcast(); s.Unlock() })
	defer wake.Stop()
	stop := contextWake(r, s)
	defer stop()
	for {
		got := s.lease(who, most)
		over := !time.Now().Before(until) || s.live == nil || r.Context().Err() != nil || s.workers[who.id] != who || who.gone
		if len(got) > 0 || over {
			answer(w, http.StatusOK, protocol.ClaimAnswer{Tasks: got, Signals: []protocol.LeaseSignal{}})
			return
		}
		s.changed.Wait()
	}
}

func contextWake(r *http.Request, s *Server) func() {
	done := make(chan struct{})
	go func() {
		select {
		case <-r.Context().Done():
			s.Lock()
			s.changed.Broadcast()
			s.Unlock()
		case <-done:
		}
	}()
	return func() { close(done) }
}

// lease grants up to most tasks, within the worker's registered slots.
func (s *Server) lease(who *worker, most int) []protocol.Lease {
	got := []protocol.Lease{}
	if s.live == nil || s.workers[who.id] != who || who.gone {
		return got
	}
	free := 1
	if who.registration.Slots != nil {
		free = who.registration.Slots.Total()
	}
	for _, t := range s.tasks {
		if t.State == "running" && t.worker == who.id {
			free--
		}
	}
	for _, t := range s.tasks {
		if len(got) >= min(most, free) {
			break
		}
		if t.State != "ready" || !fits(who.registration.TaskTypes, t.Lease.Type) {
			continue
		}
		s.numbered++
		t.Attempts++
		t.token, t.worker, t.State = fmt.Sprintf("lease-%d", s.numbered), who.id, "running"
		t.granted, t.missing = time.Now(), time.Time{}
		t.Expires = t.granted.Add(time.Duration(who.leaseSeconds) * time.Second)
		s.leases[t.token], s.issued[t.token] = t, t
		if s.Changed != nil {
			s.Changed(t)
		}
		l := t.Lease
		l.LeaseToken, l.LeaseExpiresAt, l.Attempt = t.token, protocol.At(t.Expires), t.Attempts
		l.AttemptID, l.Checkpoint = fmt.Sprintf("att_%d", s.numbered), t.Checkpoint
		got = append(got, l)
	}
	if len(got) > 0 {
		s.changed.Broadcast()
	}
	return got
}

func (s *Server) goodbye(w http.ResponseWriter, _ *http.Request, who *worker) {
	who.gone = true
	s.changed.Broadcast()
	answer(w, http.StatusOK, map[string]string{"id": who.id})
}
