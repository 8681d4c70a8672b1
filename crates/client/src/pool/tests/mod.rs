mod cost;
mod futures;
mod machine;
mod model;
