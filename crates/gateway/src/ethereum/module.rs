//! How methods are registered: those that read the state or compute run on the threads for that.

use super::arguments::Arguments;
use super::context::Context;
use super::error::Failure;
use jsonrpsee::RpcModule;
use jsonrpsee::core::{RegisterMethodError, Serialize};
use std::sync::Arc;

/// Methods of a server, with the state that they share.
pub(super) type Module = RpcModule<Context>;

pub(super) type Registered = Result<(), RegisterMethodError>;

/// Registers a method that may read and compute.
pub(super) fn method<R: Serialize + Clone + Send + 'static>(
    module: &mut Module,
    name: &'static str,
    answer: fn(&Context, Arguments<'_>) -> Result<R, Failure>,
) -> Registered {
    let call = move |params: jsonrpsee::types::Params<'_>, context: Arc<Context>, _| {
        answer(&context, Arguments::of(&params))
    };
    module.register_blocking_method(name, call).map(drop)
}
