// Package gateway owns the front for invocations: HTTP routes and InvokeService.
package gateway
