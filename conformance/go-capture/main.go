// Records what clients send: the TCP bytes of the ClientHello, and all that is inside of TLS. The standard
// library's TLS and HTTP answer them.
//
// Each connection becomes a file NUMBER.json in the folder, when it ends. The handler of /done says so on
// standard output, /close ends the connection behind its answer, and / is a page whose script asks for more.
//
// What happens to connections goes to events.jsonl as it happens: when one was accepted, was secured, asked for
// something, and ended. /alone is a page that asks for nothing, /next leads to the one that the query names, /many
// asks for more at once than a browser has connections for, /apart for something without credentials, and /again loses
// its connection and leads to /alone.
package main

import (
	"context"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
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

// How long the answer to /slow takes.
const slow = time.Second

const page = `<!doctype html><title>capture</title><link rel="icon" href="data:,"><script>
(async () => { await fetch("/fetched"); await fetch("/done"); })();
</script>`

var pages = map[string]string{
	"/":      page,
	"/alone": `<!doctype html><title>alone</title><link rel="icon" href="data:,">`,
	"/next": `<!doctype html><title>next</title><link rel="icon" href="data:,"><script>
setTimeout(() => { location = decodeURIComponent(location.search.slice(1)); }, 500);
</script>`,
	"/again": `<!doctype html><title>again</title><link rel="icon" href="data:,"><script>
(async () => { await fetch("/close"); setTimeout(() => { location = "/alone"; }, 1000); })();
</script>`,
	"/many": `<!doctype html><title>many</title><link rel="icon" href="data:,"><script>
(async () => {
  await Promise.all(Array.from({ length: 10 }, (_, i) => fetch("/slow?" + i)));
  await fetch("/done");
})();
</script>`,
	"/apart": `<!doctype html><title>apart</title><link rel="icon" href="data:,"><script>
const after = (ms) => new Promise((then) => setTimeout(then, ms));
(async () => {
  await after(500);
  await fetch("/with");
  await fetch("/without", { credentials: "omit" });
  await fetch("/with-again");
  await fetch("/without-again", { credentials: "omit" });
  const other = location.origin.replace("a.test", "b.test");
  await fetch(other + "/other-with", { mode: "no-cors", credentials: "include" });
  await fetch(other + "/other-without");
  await fetch(other + "/other-preflight", { headers: { "x-own": "1" } });
  await after(200);
  await new Promise((then) => { new WebSocket(location.origin.replace("http", "ws") + "/ws").onclose = then; });
  await fetch("/done");
})();
</script>`,
}

// One listener's word on its own: KIND=ADDRESS, or KIND=ADDRESS/DELAY for a server that takes so long to answer a
// ClientHello, as one far away does.
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
	read func() // told of bytes
}

func (t *tap) Read(into []byte) (int, error) {
	n, err := t.Conn.Read(into)
	if n > 0 && t.read != nil {
		t.read()
	}
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
	number int64
	to     *recorder
	once   sync.Once
}

func (c *conn) Close() error {
	err := c.tap.Close()
	c.once.Do(func() {
		c.to.tell(event{Conn: c.number, What: "ended"})
		c.record.App = hex.EncodeToString(c.tap.stop())
		c.to.write(c.record)
	})
	return err
}

// event is a line of events.jsonl. A connection that only looks whether somebody listens ends without being secured.
type event struct {
	At       int64  `json:"at"` // microseconds since the recorder started
	Conn     int64  `json:"conn"`
	What     string `json:"what"` // accepted, hello, secured, asked, ended
	Listener string `json:"listener,omitempty"`
	Alpn     string `json:"alpn,omitempty"`
	Resumed  bool   `json:"resumed,omitempty"`
	Path     string `json:"path,omitempty"`
}

type recorder struct {
	folder string
	count  atomic.Int64
	conns  atomic.Int64
	since  time.Time
	sync.Mutex
	events *os.File
}

func (r *recorder) tell(what event) {
	r.Lock()
	defer r.Unlock()
	what.At = time.Since(r.since).Microseconds()
	text, err := json.Marshal(what)
	if err == nil {
		_, err = r.events.Write(append(text, '\n'))
	}
	if err != nil {
		log.Fatal(err)
	}
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
	what, number := record{Listener: kind}, r.conns.Add(1)
	r.tell(event{Conn: number, What: "accepted", Listener: kind})
	if config == nil {
		to <- &conn{tap: &tap{Conn: socket, left: appLimit}, record: what, number: number, to: r}
		return
	}
	begun := sync.OnceFunc(func() { r.tell(event{Conn: number, What: "hello"}) })
	raw := &tap{Conn: socket, left: helloLimit, read: begun}
	secure := tls.Server(raw, config)
	_ = socket.SetDeadline(time.Now().Add(30 * time.Second))
	err := secure.Handshake()
	what.Hello = hex.EncodeToString(raw.stop())
	if err != nil {
		_ = socket.Close()
		r.tell(event{Conn: number, What: "ended"})
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
	r.tell(event{Conn: number, What: "secured", Alpn: what.Alpn, Resumed: what.Resumed})
	to <- &conn{tap: &tap{Conn: secure, left: appLimit}, record: what, number: number, to: r}
}

func within(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, ofConn{}, c)
}

// ofConn is where a request's context has its connection.
type ofConn struct{}

func answer(w http.ResponseWriter, asked *http.Request) {
	if c, is := asked.Context().Value(ofConn{}).(*conn); is {
		c.to.tell(event{Conn: c.number, What: "asked", Path: asked.URL.Path})
	}
	_, _ = io.Copy(io.Discard, asked.Body)
	w.Header().Set("Access-Control-Allow-Origin", "*")
	w.Header().Set("Access-Control-Allow-Headers", "*")
	if text, is := pages[asked.URL.Path]; is {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, text)
		return
	}
	switch asked.URL.Path {
	case "/slow":
		time.Sleep(slow)
	case "/done":
		fmt.Println("done")
	case "/away":
		to, _ := url.QueryUnescape(asked.URL.RawQuery)
		http.Redirect(w, asked, to, http.StatusFound)
		return
	case "/close":
		w.Header().Set("Connection", "close")
	}
	w.Header().Set("Content-Type", "text/plain")
	fmt.Fprintln(w, "ok")
}

func main() {
	var listen listeners
	flag.Var(&listen, "listen", "h2=ADDRESS, h1=ADDRESS or plain=ADDRESS, any number of times; with /DELAY of the handshake")
	cert := flag.String("cert", "", "certificate, PEM")
	key := flag.String("key", "", "its key, PEM")
	folder := flag.String("folder", ".", "where the records go")
	flag.Parse()
	pair, err := tls.LoadX509KeyPair(*cert, *key)
	if err != nil {
		log.Fatal(err)
	}
	events, err := os.Create(filepath.Join(*folder, "events.jsonl"))
	if err != nil {
		log.Fatal(err)
	}
	to := &recorder{folder: *folder, since: time.Now(), events: events}
	for _, text := range listen {
		kind, rest, _ := strings.Cut(text, "=")
		address, delay, delayed := strings.Cut(rest, "/")
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
		if delayed {
			pause, err := time.ParseDuration(delay)
			if err != nil || config == nil {
				log.Fatalf("no such delay of a handshake: %s", text)
			}
			config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
				time.Sleep(pause)
				return nil, nil
			}
		}
		protocols := new(http.Protocols)
		protocols.SetHTTP1(true)
		protocols.SetUnencryptedHTTP2(true)
		server := &http.Server{Handler: http.HandlerFunc(answer), Protocols: protocols, ConnContext: within}
		go func() { log.Fatal(server.Serve(to.accept(kind, listener, config))) }()
	}
	fmt.Println("listening")
	select {}
}
