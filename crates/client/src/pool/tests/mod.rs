mod futures;
mod machine;
mod model;
