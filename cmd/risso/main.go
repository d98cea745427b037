// Command risso is the remote-DBA team in one binary.
package main

func main() {}
