module mimus.test/go-sse

go 1.24

require github.com/tmaxmax/go-sse v0.11.0
