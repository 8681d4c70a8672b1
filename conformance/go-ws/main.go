// Command go-ws says back what it is told over WebSocket: with coder/websocket at /, with
// gorilla/websocket at /gorilla. Its arguments are the ports without TLS and with it, the certificate
// and its key.
package main

import (
	"io"
	"log"
	"net/http"
	"os"

	coder "github.com/coder/websocket"
	gorilla "github.com/gorilla/websocket"
)

const subprotocol = "superchat"

// withCoder streams each message back while it comes, so that what is large goes back in fragments.
func withCoder(w http.ResponseWriter, r *http.Request) {
	socket, err := coder.Accept(w, r, &coder.AcceptOptions{
		Subprotocols:    []string{subprotocol},
		CompressionMode: coder.CompressionContextTakeover,
	})
	if err != nil {
		log.Print(err)
		return
	}
	defer socket.CloseNow()
	socket.SetReadLimit(-1)
	for {
		kind, in, err := socket.Reader(r.Context())
		if err != nil {
			return
		}
		out, err := socket.Writer(r.Context(), kind)
		if err != nil {
			return
		}
		if _, err := io.Copy(out, in); err != nil {
			log.Print(err)
			return
		}
		if err := out.Close(); err != nil {
			log.Print(err)
			return
		}
	}
}

func withGorilla(w http.ResponseWriter, r *http.Request) {
	upgrader := gorilla.Upgrader{Subprotocols: []string{subprotocol}, EnableCompression: true}
	socket, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		log.Print(err)
		return
	}
	defer socket.Close()
	for {
		kind, message, err := socket.ReadMessage()
		if err != nil {
			return
		}
		if err := socket.WriteMessage(kind, message); err != nil {
			log.Print(err)
			return
		}
	}
}

func main() {
	http.HandleFunc("/", withCoder)
	http.HandleFunc("/gorilla", withGorilla)
	plain, secure, cert, key := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	go func() { log.Fatal(http.ListenAndServe("127.0.0.1:"+plain, nil)) }()
	log.Fatal(http.ListenAndServeTLS("127.0.0.1:"+secure, cert, key, nil))
}
