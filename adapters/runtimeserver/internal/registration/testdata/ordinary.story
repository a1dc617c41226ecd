# A function is loaded, called twice and unregistered while it is idle.
start                   -> registering | start-load
@1 invoke               -> refused
@2 loaded               -> ready active@2 | answer-register
@3 invoke               -> busy in-flight active@3 | start-invocation
@3 invoke               -> refused
@4 ended                -> ready active@4 |
@5 invoke               -> busy in-flight active@5 | start-invocation
@6 ended                -> ready active@6 |
@7 unregister 30s       -> closing active@6 cause=unregister | close
@7 invoke               -> refused
@8 closed               -> gone active@6 cause=unregister | release
@9 unregister 30s       -> refused
