// A source of server-sent events, by github.com/tmaxmax/go-sse: what it writes, keeps and replays is the
// library's doing.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/tmaxmax/go-sse"
)

func main() {
	plain := flag.String("plain", "127.0.0.1:0", "address for plain text, HTTP/1.1 and HTTP/2 by prior knowledge")
	secure := flag.String("tls", "127.0.0.1:0", "address for TLS")
	cert := flag.String("cert", "", "certificate file")
	key := flag.String("key", "", "key file")
	flag.Parse()

	replayer, err := sse.NewFiniteReplayer(10_000, true)
	if err != nil {
		log.Fatal(err)
	}
	source := &sse.Server{Provider: &sse.Joe{Replayer: replayer}}
	go publish(source)

	mux := http.NewServeMux()
	// Each connection is ended after so long: a client has to come back for more.
	mux.HandleFunc("GET /events", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(os.Stderr, "opened behind %q\n", r.Header.Get("Last-Event-ID"))
		length, err := time.ParseDuration(r.URL.Query().Get("for"))
		if err != nil {
			length = time.Hour
		}
		ctx, cancel := context.WithTimeout(r.Context(), length)
		defer cancel()
		source.ServeHTTP(w, r.WithContext(ctx))
		fmt.Fprintln(os.Stderr, "ended")
	})
	// One session of a few messages of every kind, then the end.
	mux.HandleFunc("GET /kinds", kinds)

	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	open := func(addr string) *http.Server {
		return &http.Server{Addr: addr, Handler: mux, Protocols: &protocols}
	}
	go func() { log.Fatal(open(*secure).ListenAndServeTLS(*cert, *key)) }()
	log.Fatal(open(*plain).ListenAndServe())
}

// publish numbers messages for as long as it runs.
func publish(source *sse.Server) {
	for n := 0; ; n++ {
		message := &sse.Message{Type: sse.Type("tick"), Retry: 20 * time.Millisecond}
		message.AppendData(fmt.Sprintf("{\"n\": %d}", n))
		message.AppendComment("between two messages")
		if err := source.Publish(message); err != nil {
			log.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func kinds(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Last-Event-ID") != "" {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	session, err := sse.Upgrade(w, r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	lines, long, last := &sse.Message{}, &sse.Message{}, &sse.Message{ID: sse.ID("last one"), Retry: time.Millisecond}
	lines.AppendData("two\nlines", "and \u00fcn\u00efc\u00f6d\u00e9 \U0001f426")
	long.AppendData(strings.Repeat("long ", 100_000))
	last.AppendData("end")
	for _, message := range []*sse.Message{lines, long, last} {
		if session.Send(message) != nil || session.Flush() != nil {
			return
		}
	}
}
