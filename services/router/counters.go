package router

import "sync/atomic"

// counters count since the start. They are read one by one, not as one moment.
type counters struct {
	started, succeeded, failed, refused, cold, checkpoint, pooled, session, evicted atomic.Int64
}

// Counters returns the counts by name, with the present load beside them.
func (s *Service) Counters() map[string]int64 {
	inFlight, queued, reserved := s.cluster.Load()
	c := &s.counters
	return map[string]int64{
		"executions_started":   c.started.Load(),
		"executions_succeeded": c.succeeded.Load(),
		"executions_failed":    c.failed.Load(),
		"executions_in_flight": int64(inFlight),
		"executions_queued":    int64(queued),
		"reservations":         int64(reserved),
		"admissions_refused":   c.refused.Load(),
		"starts_cold":          c.cold.Load(),
		"starts_checkpoint":    c.checkpoint.Load(),
		"starts_pooled":        c.pooled.Load(),
		"starts_session":       c.session.Load(),
		"workers_evicted":      c.evicted.Load(),
	}
}
