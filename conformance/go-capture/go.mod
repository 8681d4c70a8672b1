module mimus.test/go-capture

go 1.24
