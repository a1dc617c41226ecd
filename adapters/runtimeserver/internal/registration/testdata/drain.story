# The invocation ends within the drain; a second unregister joins the first.
start                   -> registering | start-load
@1 loaded               -> ready active@1 | answer-register
@2 invoke               -> busy in-flight active@2 | start-invocation
@3 unregister 10s       -> draining in-flight active@2 until@13 cause=unregister | start-drain
@4 unregister 1s        -> draining in-flight active@2 until@13 cause=unregister |
@5 invoke               -> refused
@6 ended                -> closing active@6 cause=unregister | stop-drain close
@7 closed               -> gone active@6 cause=unregister | release

# The handler is stuck: the drain gives up, nothing stays in draining.
start                   -> registering | start-load
@1 loaded               -> ready active@1 | answer-register
@2 invoke               -> busy in-flight active@2 | start-invocation
@3 unregister 10s       -> draining in-flight active@2 until@13 cause=unregister | start-drain
@13 drain-deadline      -> closing in-flight active@2 cause=unregister | cancel-invocation
@13 ended               -> closing active@13 cause=unregister | close
@14 closed              -> gone active@13 cause=unregister | release

# Unregister with cancel_in_flight, and one that overtakes a drain.
start                   -> registering | start-load
@1 loaded               -> ready active@1 | answer-register
@2 invoke               -> busy in-flight active@2 | start-invocation
@3 unregister 10s       -> draining in-flight active@2 until@13 cause=unregister | start-drain
@4 unregister-now       -> closing in-flight active@2 cause=unregister | stop-drain cancel-invocation
@5 ended                -> closing active@5 cause=unregister | close
@5 drain-deadline       -> closing active@5 cause=unregister |
@6 closed               -> gone active@5 cause=unregister | release
