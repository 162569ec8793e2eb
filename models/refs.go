package models

// TaskRef names a row of an environment.
type TaskRef struct {
	Env int32
	ID  ID
}

// IdemRef names a business idempotency key.
type IdemRef struct {
	Env int32
	Key string
}

// OnceRef names an Idempotency-Key.
type OnceRef struct{ Scope, Key string }

// TokenRef names an attempt by its task and its lease's token.
type TokenRef struct {
	Env   int32
	Task  ID
	Token ID
}

// QualityRef names what a source said of a task's result.
type QualityRef struct {
	Env    int32
	Task   ID
	Source string
}
