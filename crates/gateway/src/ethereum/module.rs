//! How methods are registered, by what they cost: what needs no state is answered where it comes
//! in, what reads a little on the threads for that, and what computes there too, but never on all
//! of them.

use super::access::{Asker, Kept};
use super::arguments::Arguments;
use super::computing::Place;
use super::context::Context;
use super::error::{Failure, internal};
use jsonrpsee::core::{JsonRawValue, RegisterMethodError, Serialize, to_json_raw_value};
use jsonrpsee::types::Params;
use jsonrpsee::{Extensions, RpcModule};
use std::sync::Arc;
use tokio::task::spawn_blocking;

/// Methods of a server, with the state that they share.
pub(super) type Module = RpcModule<Context>;

pub(super) type Registered = Result<(), RegisterMethodError>;

/// Registers a method that needs nothing of the state.
pub(super) fn instant<R: Serialize + Clone + Send + 'static>(
    module: &mut Module,
    name: &'static str,
    answer: fn(&Context) -> R,
) -> Registered {
    let call = move |_: Params<'_>, context: &Context, _: &_| -> Result<R, Failure> {
        Ok(answer(context))
    };
    module.register_method(name, call).map(drop)
}

/// Registers a method that reads a bounded part of the state.
pub(super) fn method<R: Serialize + Clone + Send + 'static>(
    module: &mut Module,
    name: &'static str,
    answer: fn(&Context, Arguments<'_>) -> Result<R, Failure>,
) -> Registered {
    let call = move |params: Params<'_>, context: Arc<Context>, _| {
        answer(&context, Arguments::of(&params))
    };
    module.register_blocking_method(name, call).map(drop)
}

/// A caller's place on a thread, when it has read what was answered before: answers may be large,
/// and while one waits for its turn there come others.
async fn turn(context: &Context, extensions: &Extensions) -> Result<Place, Failure> {
    let kept = Kept::of(extensions);
    loop {
        let place = context.computing.take(Asker::of(extensions)).await?;
        if !kept.is_unread() {
            return Ok(place);
        }
        drop(place);
        kept.room().await;
    }
}

/// Registers a method that computes, or reads as much as it is asked to. Its place on a thread is
/// its own until it is done, be its caller there or not, and its answer is written there.
pub(super) fn computing<R: Serialize + 'static>(
    module: &mut Module,
    name: &'static str,
    answer: fn(&Context, Arguments<'_>) -> Result<R, Failure>,
) -> Registered {
    let call = move |params: Params<'static>, context: Arc<Context>, extensions| async move {
        let place = turn(&context, &extensions).await?;
        let compute = move || -> Result<Box<JsonRawValue>, Failure> {
            let _place = place;
            let answer = answer(&context, Arguments::of(&params))?;
            to_json_raw_value(&answer).map_err(internal)
        };
        spawn_blocking(compute).await.map_err(internal)?
    };
    module.register_async_method(name, call).map(drop)
}
