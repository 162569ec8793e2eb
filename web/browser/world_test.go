package browser

import "fmt"

// world is a tenant with work in several states.
type world struct {
	*stage
	slug, token string
	worker      string
	session     string
	dead        []string // tasks that stopped retrying
	workflow    string
}

// newTenant makes a tenant and a key with every scope that a tenant can give.
func (s *stage) newTenant(slug, name string) *world {
	s.t.Helper()
	s.call("POST", "/v1/tenants", s.root, object{"name": name, "slug": slug})
	key := s.call("POST", "/v1/api-keys", s.root, object{
		"name": "a key", "scopes": []string{"tasks:read", "tasks:write", "admin:read", "admin:write", "workers:register", "usage:read", "schedules:read", "schedules:write"},
	}, "Nightshift-Tenant", slug)
	return &world{stage: s, slug: slug, token: s.token(str(key, "client_id"), str(key, "client_secret"))}
}

// words are the texts that a caller may choose.
type words struct{ workflow, label, description, failure, reason string }

var plain = words{"nightly", "a", "sums up the day", "the disk is full", "being mended"}

// fill has a workflow of twelve tasks, a worker that runs some of them, dead letters and a paused lane.
func (w *world) fill(say words) {
	w.t.Helper()
	var tasks []object
	for i := range 12 {
		task := object{
			"key": fmt.Sprintf("k%02d", i), "type": "text.summarize", "lane": "batch", "priority": 90 - i, "description": say.description,
			"labels": object{"customer": say.label}, "payload": object{"text": say.description}, "retry_policy": object{"max_attempts": 1},
		}
		switch {
		case i >= 9:
			task["depends_on"] = []string{"k00", fmt.Sprintf("k%02d", i-3)}
		case i == 8:
			task["delay_seconds"] = 3600
		}
		tasks = append(tasks, task)
	}
	w.workflow = str(w.call("POST", "/v1/workflows", w.token, object{"name": say.workflow, "tasks": tasks}), "id")
	registered := w.call("POST", "/v1/workers", w.token, object{
		"name": "summarizer", "version": "1.2", "slots": 8, "task_types": []string{"text.summarize"}, "instance_id": "one-" + w.slug,
		"resources": object{"cpu": 4, "memory_mb": 4096}, "labels": object{"region": say.label},
	})
	w.worker, w.session = str(registered, "worker_id"), str(registered, "session")
	claimed := w.call("POST", "/v1/workers/"+w.worker+"/claim", w.token, object{"max_tasks": 5, "wait_seconds": 10}, "Nightshift-Session", w.session)
	var results []object
	for i := range 4 { // the fifth goes on running
		at := fmt.Sprintf("tasks.%d.", i)
		result := object{"lease_token": str(claimed, at+"lease_token"), "status": "succeeded", "result": object{"text": say.description}}
		if i > 1 {
			result = object{"lease_token": str(claimed, at+"lease_token"), "status": "failed", "error": object{
				"class": "invalid_input", "message": say.failure, "stack": say.failure, "provider_response": say.failure,
			}}
			w.dead = append(w.dead, str(claimed, at+"task_id"))
		}
		results = append(results, result)
	}
	w.call("POST", "/v1/workers/"+w.worker+"/results", w.token, object{"results": results}, "Nightshift-Session", w.session)
	w.call("POST", "/v1/lanes/io/pause", w.token, object{"reason": say.reason})
	for _, id := range w.dead {
		w.await("a dead letter", func() bool { return w.state(id) == "dead_letter" })
	}
}

func (w *world) state(task string) string {
	w.t.Helper()
	return str(w.call("GET", "/v1/tasks/"+task, w.token, nil), "state")
}
