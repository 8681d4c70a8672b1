module mimus.test/go-ws

go 1.24

require (
	github.com/coder/websocket v1.8.14
	github.com/gorilla/websocket v1.5.3
)
