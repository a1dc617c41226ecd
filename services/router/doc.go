// Package router owns the placement of executions on workers, and their sessions.
//
// The way of a call: proxy.go reads the first message → plan.go judges it →
// dispatch.go waits for the session's turn, has a worker chosen and tries it →
// relay.go streams in both directions → edge.go says what it came to. Reports of
// workers come in through registry.go. What is known of workers, containers and
// sessions is in internal/cluster, which puts one lock around two pure machines,
// internal/placement and internal/sessions; internal/workers dials and probes.
//
// # What a worker must know
//
//   - It reports to every router by PostWorkerStatus (with a new incarnation at
//     every start), and again as soon as any post answers updated=false, followed by
//     the state of each container: so a restarted router knows all again. The
//     reports of one container arrive in the order of its states.
//   - BUSY says that the worker is being prepared and will be READY: it gets no calls,
//     and where nobody else is ready, calls wait for it. Only READY workers are probed.
//   - A silent worker is evicted after 30 s: utilization every 10 s keeps it, and
//     must include every container that was reported before it. A container is
//     counted by the router until then from the call that it was created for, which
//     it knows by request_id, or by container_id in an answer.
//   - It is probed by grpc.health.v1 with an empty service name. NOT_SERVING is a
//     failed probe; three in a row evict it and end its calls. STATUS_REMOVED takes
//     it out of the choice and of the probes, and lets its calls end.
//   - It refuses before anything ran, and before its first message, with
//     ResourceExhausted or Unavailable and the reason WORKER_FULL, WORKER_STOPPING or
//     ADMISSION_REFUSED (ResourceExhausted without any reason counts too): the call
//     then goes to the next worker, together with the part of its body that was
//     sent, as long as that part fits in ReplayBytes. Every other error is the call's
//     own.
//   - Each of its messages says how the call came to its container (start,
//     checkpoint_id: what happened, not what was asked) and the budgets that hold at
//     that moment; both are passed on to the client.
//   - checkpoint_ids of its status are all that it may be asked to start from, zygotes
//     included; they are posted again when they change, and with every utilization. Of
//     one that lists none no checkpoint is asked; what it starts from is its own choice
//     all the same.
//   - A message without data may come first, as soon as the container is known: it
//     tells the ids and is not passed on. success on the last message says whether the
//     session's container lives on.
//   - After a call without a session, or a failed one, the router counts the
//     container as gone at once; one that is still being taken down should not count
//     against admission.
//   - A cancelled call, whoever cancelled it, has failed: its container is destroyed.
//   - Calls come in gRPC over h2c or TLS, or inside the process.
//
// # Where a start is chosen
//
// The worker chooses what a container starts from, by the imports that are sent along,
// unless the call is to start cold. dispatch.checkpoint is the one place that names a
// checkpoint: the client's own, or a catalogue's. placement.Request.Checkpoint moves a
// call to workers that hold what the client has named, as far as they have room;
// placement.Request.Warm inclines it to those where its imports are done, as far as load
// allows (docs/decisions/0007-zygotes.md).
package router
