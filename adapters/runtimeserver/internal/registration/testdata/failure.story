# The code raises while it is loaded: FAILED until it is unregistered.
start                   -> registering | start-load
@1 load-failed "boom"   -> failed fatal="boom" | answer-register
@2 invoke               -> refused
@3 unregister 30s       -> closing fatal="boom" cause=unregister | close
@4 closed               -> gone fatal="boom" cause=unregister | release

# The name is no function: nothing is left behind.
start                   -> registering | start-load
@1 load-invalid         -> gone | release answer-register

# After a kill no successor could be loaded.
start                   -> registering | start-load
@1 loaded               -> ready active@1 | answer-register
@2 invoke               -> busy in-flight active@2 | start-invocation
@3 lost "disk is gone"  -> failed active@3 fatal="disk is gone" |
@4 supersede            -> closing active@3 fatal="disk is gone" cause=supersede | close
@5 closed               -> gone active@3 fatal="disk is gone" cause=supersede | release
