// Command hearth runs and drives Hearth.
package main

func main() {}
