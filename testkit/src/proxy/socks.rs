use crate::conn::Conn;
pub(crate) async fn serve(_c: Conn) {}
