# A higher attempt arrives while an invocation runs.
start                   -> registering | start-load
@1 loaded               -> ready active@1 | answer-register
@2 invoke               -> busy in-flight active@2 | start-invocation
@3 supersede            -> closing in-flight active@2 cause=supersede | cancel-invocation
@4 ended                -> closing active@4 cause=supersede | close
@5 closed               -> gone active@4 cause=supersede | release

# A higher attempt arrives while the lower one loads; the load ends well, late.
start                   -> registering | start-load
@1 supersede            -> closing cause=supersede | cancel-load answer-register
@2 loaded               -> closing cause=supersede | close
@3 closed               -> gone cause=supersede | release

# The server stops in the middle of a drain.
start                   -> registering | start-load
@1 loaded               -> ready active@1 | answer-register
@2 invoke               -> busy in-flight active@2 | start-invocation
@3 unregister 10s       -> draining in-flight active@2 until@13 cause=unregister | start-drain
@4 stop                 -> closing in-flight active@2 cause=unregister | stop-drain cancel-invocation
@5 ended                -> closing active@5 cause=unregister | close
@6 closed               -> gone active@5 cause=unregister | release
