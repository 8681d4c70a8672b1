//! A unary call of gRPC, as little as makes it one.

use http::{HeaderValue, Method, Request, Uri, header::CONTENT_TYPE};
use mimus_bench_grpc::{Codec, Echo};
use mimus_bench_kit::{Ask, Outgoing, PeerError, Seen};

use crate::{H2, collect};

impl H2 {
    pub async fn call(&self, ask: Ask<'_>, codec: Codec, seen: &mut Seen) -> Result<(), PeerError> {
        let Outgoing::Known(text) = ask.upload else { return Err("a call sends one text".into()) };
        let uri: Uri = ask.url.parse()?;
        let mut connection = self.connection(&uri).await?;
        let request = Request::builder()
            .method(Method::POST)
            .uri(uri)
            .header(CONTENT_TYPE, HeaderValue::from_static(codec.content_type()))
            .header("te", HeaderValue::from_static("trailers"))
            .body(())?;
        let (response, mut body) = connection.send_request(request, false)?;
        body.send_data(codec.frame(&Echo::of(&text)?)?, true)?;
        let mut response = response.await?;
        let body = response.body_mut();
        let frame = collect(body).await?;
        let trailers = body.trailers().await?.ok_or("no trailers")?;
        if trailers.get("grpc-status").map(HeaderValue::as_bytes) != Some(b"0") {
            return Err("the call failed".into());
        }
        let reply = codec.unframe(&frame)?;
        seen.status(response.status().as_u16());
        seen.whole(reply.text.as_bytes());
        Ok(())
    }
}
