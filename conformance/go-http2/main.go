// go-http2 serves Go's own HTTP/2, over TLS and by prior knowledge, with routes that say what arrived.
//
// It needs nothing but the standard library. What it does not say itself (flow control, header
// compression, GOAWAY) is what Go's net/http does.
package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

func number(r *http.Request, name string, otherwise int) int {
	value, err := strconv.Atoi(r.URL.Query().Get(name))
	if err != nil {
		return otherwise
	}
	return value
}

// echo says what arrived; the body is read to its end first, so that its trailers are there.
func echo(w http.ResponseWriter, r *http.Request) {
	hash := sha256.New()
	length, err := io.Copy(hash, r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{
		"proto":      r.Proto,
		"method":     r.Method,
		"host":       r.Host,
		"target":     r.RequestURI,
		"headers":    r.Header,
		"trailers":   r.Trailer,
		"length":     length,
		"declared":   r.ContentLength,
		"sha256":     hex.EncodeToString(hash.Sum(nil)),
		"connection": r.RemoteAddr,
	})
}

// bytes sends ?n= bytes in pieces of ?piece=, each flushed, without a length unless ?length=1.
func bytes(w http.ResponseWriter, r *http.Request) {
	left, piece := number(r, "n", 1000), number(r, "piece", 16384)
	if r.URL.Query().Get("length") != "" {
		w.Header().Set("Content-Length", strconv.Itoa(left))
	}
	block := []byte(strings.Repeat("mockingbird ", piece/12+1))[:piece]
	for left > 0 {
		n := min(left, piece)
		if _, err := w.Write(block[:n]); err != nil {
			return
		}
		left -= n
		_ = http.NewResponseController(w).Flush()
	}
}

func trailers(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Trailer", "X-Count")
	fmt.Fprint(w, "body\n")
	w.Header().Set("X-Count", "5")
	w.Header().Set(http.TrailerPrefix+"X-Late", "yes")
}

func hints(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Link", "</style.css>; rel=preload")
	w.WriteHeader(http.StatusEarlyHints)
	w.WriteHeader(http.StatusEarlyHints)
	fmt.Fprint(w, "after hints\n")
}

// duplex sends back each piece of the body as it comes.
func duplex(w http.ResponseWriter, r *http.Request) {
	piece := make([]byte, 32*1024)
	for {
		n, err := r.Body.Read(piece)
		if _, failed := w.Write(piece[:n]); failed != nil || err != nil {
			return
		}
		_ = http.NewResponseController(w).Flush()
	}
}

// abort sends ?n= bytes of twice as many, and resets the stream.
func abort(w http.ResponseWriter, r *http.Request) {
	n := number(r, "n", 1000)
	if r.URL.Query().Get("length") != "" {
		w.Header().Set("Content-Length", strconv.Itoa(2*n))
	}
	if n > 0 {
		_, _ = w.Write(make([]byte, n))
		_ = http.NewResponseController(w).Flush()
	}
	panic(http.ErrAbortHandler)
}

func headers(w http.ResponseWriter, r *http.Request) {
	for i := range number(r, "n", 40) {
		w.Header().Set(fmt.Sprintf("X-Field-%d", i), strings.Repeat("v", number(r, "size", 1000)))
	}
	fmt.Fprint(w, "many\n")
}

func main() {
	plain := flag.String("plain", "", "address for HTTP/2 by prior knowledge (and HTTP/1.1)")
	secure := flag.String("tls", "", "address for HTTP/2 over TLS (and HTTP/1.1)")
	cert := flag.String("cert", "", "certificate, PEM")
	key := flag.String("key", "", "its key, PEM")
	flag.Parse()

	routes := http.NewServeMux()
	routes.HandleFunc("/echo", echo)
	routes.HandleFunc("/bytes", bytes)
	routes.HandleFunc("/trailers", trailers)
	routes.HandleFunc("/hints", hints)
	routes.HandleFunc("/duplex", duplex)
	routes.HandleFunc("/abort", abort)
	routes.HandleFunc("/headers", headers)
	routes.HandleFunc("/status", func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(number(r, "code", 200))
	})
	routes.HandleFunc("/early", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "too large", http.StatusRequestEntityTooLarge)
	})
	routes.HandleFunc("/goaway", func(w http.ResponseWriter, r *http.Request) {
		// net/http makes a graceful GOAWAY of it.
		w.Header().Set("Connection", "close")
		fmt.Fprint(w, r.RemoteAddr)
	})
	routes.HandleFunc("/connection", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.RemoteAddr)
	})
	routes.HandleFunc("/slow", func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(time.Duration(number(r, "ms", 1000)) * time.Millisecond):
			fmt.Fprint(w, "slow\n")
		case <-r.Context().Done():
			log.Printf("given up: %s", r.RequestURI)
		}
	})

	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{Handler: routes, Protocols: protocols}
	ended := make(chan error)
	listen := func(address string) net.Listener {
		listener, err := net.Listen("tcp", address)
		if err != nil {
			log.Fatal(err)
		}
		return listener
	}
	go func() { ended <- server.Serve(listen(*plain)) }()
	go func() { ended <- server.ServeTLS(listen(*secure), *cert, *key) }()
	log.Fatal(<-ended)
}
