// An echo server made of Node's `ws`: ports without TLS and with it, certificate, key.
const { readFileSync } = require("node:fs");
const http = require("node:http");
const https = require("node:https");
const { WebSocketServer } = require("ws");

const [plain, secure, cert, key] = process.argv.slice(2);
const PIECE = 100_000;

function listen(server, port) {
  const sockets = new WebSocketServer({
    server,
    perMessageDeflate: true,
    maxPayload: 64 * 1024 * 1024,
    handleProtocols: (offered) => (offered.has("superchat") ? "superchat" : false),
  });
  sockets.on("connection", (socket) => {
    socket.on("message", (data, binary) => {
      // What is large goes back in fragments; text is cut where it falls, within characters too.
      for (let at = 0; at === 0 || at < data.length; at += PIECE) {
        socket.send(data.subarray(at, at + PIECE), { binary, fin: at + PIECE >= data.length });
      }
    });
  });
  server.listen(Number(port), "127.0.0.1");
}

listen(http.createServer(), plain);
listen(https.createServer({ cert: readFileSync(cert), key: readFileSync(key) }), secure);
