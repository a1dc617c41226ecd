// Package kit owns what every service does alike, one package a noun: edge
// (errors on the wire), serve (listeners and interceptors), dial (clients),
// group (what runs beside what, and stops in which order), config (flags and
// environment), daemon (the main of a small binary), hop (headers between services)
// and logs. It knows no service.
package kit
