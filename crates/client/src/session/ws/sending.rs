//! What is sent, the same on a whole WebSocket and on its sending half, awaited and blocking.

/// The calls of a type that has `sent`, `has_room`, `room`, `queue` and `written`, once for each mode. What is
/// only queued waits for nothing as long as there is room, and so needs nobody to drive it.
macro_rules! sending_calls {
    ($type:ident) => {
        sending_calls!($type<$crate::Async>, [async], |call| call.await);
        sending_calls!($type<$crate::Blocking>, [], |call| mimus_net::rt::Blocking::block_on(call));
    };
    ($type:ty, [$($async:tt)?], |$call:ident| $run:expr) => {
        impl $type {
            /// Sends a message, and waits until it is written.
            ///
            /// # Errors
            /// When the connection fails or is closed. What was queued of it goes out whole or not at all,
            /// also when the call is given up.
            pub $($async)? fn send(&mut self, message: impl Into<Message>) -> Result<()> {
                let message = message.into();
                let $call = self.sent(|machine| machine.send_owned(message));
                $run
            }

            /// Sends a message of text.
            ///
            /// # Errors
            /// As for [`send`](Self::send).
            pub $($async)? fn send_text(&mut self, text: &str) -> Result<()> {
                let $call = self.sent(|machine| machine.send(MessageRef::Text(text)));
                $run
            }

            /// Sends a message of bytes.
            ///
            /// # Errors
            /// As for [`send`](Self::send).
            pub $($async)? fn send_binary(&mut self, bytes: &[u8]) -> Result<()> {
                let $call = self.sent(|machine| machine.send(MessageRef::Binary(bytes)));
                $run
            }

            /// Sends messages that were put into frames before.
            ///
            /// # Errors
            /// As for [`send`](Self::send).
            pub $($async)? fn send_prepared(&mut self, messages: &Prepared) -> Result<()> {
                let $call = self.sent(|machine| machine.send_prepared(messages));
                $run
            }

            /// Asks the server for a pong with the same payload, of at most 125 bytes.
            ///
            /// # Errors
            /// As for [`send`](Self::send).
            pub $($async)? fn ping(&mut self, payload: &[u8]) -> Result<()> {
                let $call = self.sent(|machine| machine.send(MessageRef::Ping(payload)));
                $run
            }

            /// Queues a message. It goes out with [`flush`](Self::flush), with whatever is sent or received
            /// next, or when much waits.
            ///
            /// # Errors
            /// As for [`send`](Self::send).
            pub $($async)? fn feed(&mut self, message: impl Into<Message>) -> Result<()> {
                let message = message.into();
                if !self.has_room() {
                    let $call = self.room();
                    $run?;
                }
                self.queue(|machine| machine.send_owned(message))
            }

            /// Queues a message of text.
            ///
            /// # Errors
            /// As for [`send`](Self::send).
            pub $($async)? fn feed_text(&mut self, text: &str) -> Result<()> {
                if !self.has_room() {
                    let $call = self.room();
                    $run?;
                }
                self.queue(|machine| machine.send(MessageRef::Text(text)))
            }

            /// Queues a message of bytes.
            ///
            /// # Errors
            /// As for [`send`](Self::send).
            pub $($async)? fn feed_binary(&mut self, bytes: &[u8]) -> Result<()> {
                if !self.has_room() {
                    let $call = self.room();
                    $run?;
                }
                self.queue(|machine| machine.send(MessageRef::Binary(bytes)))
            }

            /// Waits until everything that was queued is written.
            ///
            /// # Errors
            /// As for [`send`](Self::send).
            pub $($async)? fn flush(&mut self) -> Result<()> {
                let $call = self.written();
                $run
            }
        }
    };
}
pub(super) use sending_calls;
