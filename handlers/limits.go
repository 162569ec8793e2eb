package handlers

import "nightshift/scheduler/engine"

// The limits that every caller is told of and held to.
const (
	RequestsPerMinute = 1_200_000 // a tenant, at one replica
	PayloadLimit      = 256 << 10
	ResultLimit       = 1 << 20
	CheckpointLimit   = 64 << 10
	LabelsMost        = 32
	DependsOnMost     = 1_000
	BatchMost         = 10_000
	WorkflowMost      = 100_000
	KeyMost           = 255
	DataLimit         = 64 << 10 // of a trigger or an item
	ItemsMost         = 1_000    // a call
	CommandMost       = 8 << 20  // of payloads that are taken at once
)

// Limits is what GET /v1/limits answers.
type Limits struct {
	PayloadBytes         int `json:"payload_bytes"`
	ResultBytes          int `json:"result_bytes"`
	CheckpointBytes      int `json:"checkpoint_bytes"`
	BodyBytes            int `json:"body_bytes"`
	BulkBodyBytes        int `json:"bulk_body_bytes"`
	BoundPayloadBytes    int `json:"bound_payload_bytes" doc:"of all payloads in a batch in which a task has an idempotency_key, dedupe, budget or depends_on, and of the children of one call"`
	LabelsPerTask        int `json:"labels_per_task"`
	DependsOnPerTask     int `json:"depends_on_per_task"`
	TasksPerBatch        int `json:"tasks_per_batch"`
	TasksPerWorkflow     int `json:"tasks_per_workflow"`
	KeyBytes             int `json:"key_bytes"`
	TriggerDataBytes     int `json:"trigger_data_bytes"`
	ItemDataBytes        int `json:"item_data_bytes"`
	ItemsPerCall         int `json:"items_per_call"`
	EventsPerRun         int `json:"events_per_run"`
	ListLimit            int `json:"list_limit"`
	RequestsPerMinute    int `json:"requests_per_minute"`
	ClaimMaxTasks        int `json:"claim_max_tasks"`
	ClaimWaitSeconds     int `json:"claim_wait_seconds"`
	LeaseSecondsLeast    int `json:"lease_seconds_least"`
	LeaseSecondsMost     int `json:"lease_seconds_most"`
	ClassesPerEnv        int `json:"classes_per_environment"`
	IdempotencyKeptHours int `json:"idempotency_kept_hours"`
}

// AllLimits are the figures.
func AllLimits() Limits {
	return Limits{
		PayloadBytes: PayloadLimit, ResultBytes: ResultLimit, CheckpointBytes: CheckpointLimit, BodyBytes: BodyLimit, BulkBodyBytes: BulkLimit, BoundPayloadBytes: CommandMost,
		LabelsPerTask: LabelsMost, DependsOnPerTask: DependsOnMost, TasksPerBatch: BatchMost, TasksPerWorkflow: WorkflowMost,
		KeyBytes: KeyMost, TriggerDataBytes: DataLimit, ItemDataBytes: DataLimit, ItemsPerCall: ItemsMost, EventsPerRun: engine.MostEvents, ListLimit: PageMost, RequestsPerMinute: RequestsPerMinute, ClaimMaxTasks: 500, ClaimWaitSeconds: 30,
		LeaseSecondsLeast: 2, LeaseSecondsMost: 300, ClassesPerEnv: 200, IdempotencyKeptHours: int(answersKept.Hours()),
	}
}
