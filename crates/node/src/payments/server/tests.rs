use super::*;

async fn order(from: u8, bounds: [&Arc<Semaphore>; 2], bytes: usize) -> Arrived {
    let permits = [take(bounds[0], bytes).await, take(bounds[1], bytes).await];
    Arrived { permits, ..Arrived::of(IdentityKey([from; 32])) }
}

#[tokio::test]
async fn orders_that_were_checked_together_give_back_all_that_they_took() {
    let [first, second, common] = [50, 60, 100].map(|bytes| Arc::new(Semaphore::new(bytes)));
    let left = || [&first, &second, &common].map(|bound| bound.available_permits());
    let orders = vec![
        order(1, [&first, &common], 20).await,
        order(2, [&second, &common], 40).await,
        order(1, [&first, &common], 30).await,
    ];
    assert_eq!(left(), [0, 20, 10]);
    Arrived::release(orders);
    assert_eq!(left(), [50, 60, 100]);
}
