// Records what clients send: the TCP bytes of the ClientHello, and all that is inside of TLS. The standard
// library's TLS and HTTP answer them.
//
// Each connection becomes a file NUMBER.json in the folder, when it ends. The handler of /done says so on
// standard output, /close ends the connection behind its answer, and / is a page whose script asks for more.
package main

import (
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// What is kept of a connection's bytes, of the handshake and of what follows.
const (
	helloLimit = 1 << 16
	appLimit   = 1 << 20
)

const page = `<!doctype html><title>capture</title><link rel="icon" href="data:,"><script>
(async () => { await fetch("/fetched"); await fetch("/done"); })();
</script>`

// One listener's word on its own: KIND=ADDRESS.
type listeners []string

func (l *listeners) String() string { return strings.Join(*l, " ") }

func (l *listeners) Set(text string) error {
	*l = append(*l, text)
	return nil
}

// tap keeps what is read from a socket until it is closed.
type tap struct {
	net.Conn
	sync.Mutex
	kept []byte
	left int
}

func (t *tap) Read(into []byte) (int, error) {
	n, err := t.Conn.Read(into)
	t.Lock()
	take := min(n, t.left)
	t.kept = append(t.kept, into[:take]...)
	t.left -= take
	t.Unlock()
	return n, err
}

func (t *tap) stop() []byte {
	t.Lock()
	defer t.Unlock()
	t.left = 0
	return t.kept
}

// record is what the files hold.
type record struct {
	Listener string `json:"listener"`
	Hello    string `json:"hello"`
	App      string `json:"app"`
	Alpn     string `json:"alpn"`
	Resumed  bool   `json:"resumed"`
	Failed   string `json:"failed,omitempty"`
}

// conn gives the decrypted bytes to the HTTP server, which so need not know of TLS, and records them.
type conn struct {
	*tap
	record record
	to     *recorder
	once   sync.Once
}

func (c *conn) Close() error {
	err := c.tap.Close()
	c.once.Do(func() {
		c.record.App = hex.EncodeToString(c.tap.stop())
		c.to.write(c.record)
	})
	return err
}

type recorder struct {
	folder string
	count  atomic.Int64
}

// write makes the file appear whole.
func (r *recorder) write(what record) {
	name := filepath.Join(r.folder, fmt.Sprintf("%06d.json", r.count.Add(1)))
	text, err := json.Marshal(what)
	if err == nil {
		err = os.WriteFile(name+".part", text, 0o644)
	}
	if err == nil {
		err = os.Rename(name+".part", name)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// ready is a listener whose connections have their handshake behind them.
type ready struct {
	net.Listener
	conns chan net.Conn
}

func (r *ready) Accept() (net.Conn, error) {
	c, open := <-r.conns
	if !open {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (r *recorder) accept(kind string, listener net.Listener, config *tls.Config) *ready {
	found := &ready{Listener: listener, conns: make(chan net.Conn)}
	go func() {
		defer close(found.conns)
		for {
			socket, err := listener.Accept()
			if err != nil {
				return
			}
			go r.shake(kind, socket, config, found.conns)
		}
	}()
	return found
}

func (r *recorder) shake(kind string, socket net.Conn, config *tls.Config, to chan<- net.Conn) {
	what := record{Listener: kind}
	if config == nil {
		to <- &conn{tap: &tap{Conn: socket, left: appLimit}, record: what, to: r}
		return
	}
	raw := &tap{Conn: socket, left: helloLimit}
	secure := tls.Server(raw, config)
	_ = socket.SetDeadline(time.Now().Add(30 * time.Second))
	err := secure.Handshake()
	what.Hello = hex.EncodeToString(raw.stop())
	if err != nil {
		_ = socket.Close()
		// Who only looks whether somebody listens says nothing.
		if what.Hello != "" {
			what.Failed = err.Error()
			r.write(what)
		}
		return
	}
	_ = socket.SetDeadline(time.Time{})
	state := secure.ConnectionState()
	what.Alpn, what.Resumed = state.NegotiatedProtocol, state.DidResume
	to <- &conn{tap: &tap{Conn: secure, left: appLimit}, record: what, to: r}
}

func answer(w http.ResponseWriter, asked *http.Request) {
	_, _ = io.Copy(io.Discard, asked.Body)
	w.Header().Set("Access-Control-Allow-Origin", "*")
	switch asked.URL.Path {
	case "/":
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, page)
		return
	case "/done":
		fmt.Println("done")
	case "/close":
		w.Header().Set("Connection", "close")
	}
	w.Header().Set("Content-Type", "text/plain")
	fmt.Fprintln(w, "ok")
}

func main() {
	var listen listeners
	flag.Var(&listen, "listen", "h2=ADDRESS, h1=ADDRESS or plain=ADDRESS, any number of times")
	cert := flag.String("cert", "", "certificate, PEM")
	key := flag.String("key", "", "its key, PEM")
	folder := flag.String("folder", ".", "where the records go")
	flag.Parse()
	pair, err := tls.LoadX509KeyPair(*cert, *key)
	if err != nil {
		log.Fatal(err)
	}
	to := &recorder{folder: *folder}
	for _, text := range listen {
		kind, address, _ := strings.Cut(text, "=")
		listener, err := net.Listen("tcp", address)
		if err != nil {
			log.Fatal(err)
		}
		config := &tls.Config{Certificates: []tls.Certificate{pair}}
		switch kind {
		case "h2":
			config.NextProtos = []string{"h2", "http/1.1"}
		case "h1":
			config.NextProtos = []string{"http/1.1"}
		case "plain":
			config = nil
		default:
			log.Fatalf("no such kind of listener: %s", kind)
		}
		protocols := new(http.Protocols)
		protocols.SetHTTP1(true)
		protocols.SetUnencryptedHTTP2(true)
		server := &http.Server{Handler: http.HandlerFunc(answer), Protocols: protocols}
		go func() { log.Fatal(server.Serve(to.accept(kind, listener, config))) }()
	}
	fmt.Println("listening")
	select {}
}
