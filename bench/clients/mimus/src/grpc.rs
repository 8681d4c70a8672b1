//! gRPC as Mimus's user has it: a channel, and a method of it to call.

use std::sync::{Arc, OnceLock};

use mimus::{
    Client, Url,
    grpc::{Json, Method, Prost},
};
use mimus_bench_grpc::Echo;
use mimus_bench_kit::{Ask, Outgoing, PeerError, Protocol, Seen};

type Methods = (Method<Prost<Echo, Echo>>, Method<Json<Echo, Echo>>);

/// The method that is called, in either serialization, once its URL is known.
#[derive(Clone, Default)]
pub(crate) struct Calls {
    methods: Arc<OnceLock<Methods>>,
}

impl Calls {
    /// One call, which sends a text and has it back.
    pub(crate) async fn unary(
        &self,
        client: &Client,
        protocol: Protocol,
        ask: Ask<'_>,
        seen: &mut Seen,
    ) -> Result<(), PeerError> {
        let Outgoing::Known(text) = ask.upload else { return Err("a call sends one text".into()) };
        let message = Echo::of(&text)?;
        let (prost, json) = match self.methods.get() {
            Some(known) => known,
            None => {
                let methods = methods(client, ask.url)?;
                self.methods.get_or_init(|| methods)
            }
        };
        let reply = match protocol {
            Protocol::GrpcJson => json.unary(message).await?.into_message(),
            _ => prost.unary(message).await?.into_message(),
        };
        seen.status(200);
        seen.whole(reply.text.as_bytes());
        Ok(())
    }
}

fn methods(client: &Client, url: &str) -> Result<Methods, PeerError> {
    let url = Url::parse(url)?;
    let channel = client.grpc(url.origin().ascii_serialization())?;
    Ok((channel.method(url.path(), Prost::new()), channel.method(url.path(), Json::new())))
}
