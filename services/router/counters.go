package router

import "sync/atomic"

// counters count since the start. They are read one by one, not as one moment.
type counters struct {
	started, succeeded, failed, refused, cold, restored, reused, evicted atomic.Int64
}

// Counters returns the counts by name, with the present load beside them.
func (s *Service) Counters() map[string]int64 {
	inFlight, queued, reserved := s.cluster.Load()
	c := &s.counters
	return map[string]int64{
		"executions_started":    c.started.Load(),
		"executions_succeeded":  c.succeeded.Load(),
		"executions_failed":     c.failed.Load(),
		"executions_in_flight":  int64(inFlight),
		"executions_queued":     int64(queued),
		"reservations":          int64(reserved),
		"admissions_refused":    c.refused.Load(),
		"placements_cold":       c.cold.Load(),
		"placements_checkpoint": c.restored.Load(),
		"placements_session":    c.reused.Load(),
		"workers_evicted":       c.evicted.Load(),
	}
}
