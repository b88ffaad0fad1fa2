use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::convert::Infallible;

type Map = BTreeMap<Vec<u8>, Place>;

fn place(number: u32) -> Place {
    Place { segment: number % 7, offset: number, length: number % 100 }
}

fn index_of(map: &Map) -> Index {
    let Ok(index) = Index::of(map.iter().map(|(key, place)| Ok::<_, Infallible>((key, *place))));
    index
}

fn agrees(index: &Index, map: &Map, (from, to): (&[u8], Option<&[u8]>)) {
    for (key, place) in map {
        assert_eq!(index.get(key), Some(*place), "{key:?}");
    }
    let mut cursor = index.range(KeyRange { from, to });
    let mut found = Vec::new();
    loop {
        let mut key = Vec::new();
        let Some(place) = cursor.next(&mut key) else { break };
        found.push((key, place));
    }
    let inside = |key: &[u8]| key >= from && to.is_none_or(|to| key < to);
    let expected: Vec<_> =
        map.iter().filter(|(key, _)| inside(key)).map(|(key, at)| (key.clone(), *at)).collect();
    assert_eq!(found, expected);
    let living: u64 = map.iter().map(|(key, at)| entry_bytes(key.len(), at.length)).sum();
    assert_eq!(index.living(), living);
}

/// Keys that share much, or little, some of them the beginnings of others.
fn key() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::collection::vec(0u8..3, 0..7),
        any::<u16>().prop_map(|number| number.to_be_bytes().to_vec()),
        any::<u16>().prop_map(|number| [&[1; 30][..], &number.to_be_bytes()].concat()),
    ]
}

fn updates() -> impl Strategy<Value = BTreeMap<Vec<u8>, Option<Place>>> {
    let place = prop::option::weighted(0.6, any::<u32>().prop_map(place));
    prop::collection::btree_map(key(), place, 0..400)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn an_index_is_a_map(
        start in prop::collection::btree_map(key(), any::<u32>().prop_map(place), 0..900),
        batches in prop::collection::vec(
            updates(),
            0..6,
        ),
        from in key(),
        to in prop::option::of(key()),
    ) {
        let mut map = start;
        let mut index = index_of(&map);
        agrees(&index, &map, (&from, to.as_deref()));
        for batch in batches {
            let updates: Vec<Update<'_>> =
                batch.iter().map(|(key, place)| (&key[..], *place)).collect();
            let before = index.clone();
            index = index.apply(&updates);
            let former = map.clone();
            for (key, place) in &batch {
                match place {
                    Some(place) => drop(map.insert(key.clone(), *place)),
                    None => drop(map.remove(key)),
                }
            }
            agrees(&index, &map, (&from, to.as_deref()));
            agrees(&before, &former, (&from, to.as_deref()));
        }
        let all: Vec<Update<'_>> = map.keys().map(|key| (&key[..], None)).collect();
        agrees(&index.apply(&all), &Map::new(), (&from, None));
    }
}

/// Sixteen bytes a key beside the key, and less than the key where keys share their beginning.
#[test]
fn a_key_takes_its_bytes_and_few_more() {
    let hashed = |number: u32| *blake3::hash(&number.to_le_bytes()).as_bytes();
    let random: Map = (0..20_000).map(|number| (hashed(number).to_vec(), place(number))).collect();
    let bytes = index_of(&random).memory_bytes() as f64 / 20_000.0;
    assert!(bytes < 32.0 + 16.0, "{bytes} bytes a key");
    let slot = |number: u32| [&[7; 20][..], &hashed(number)].concat();
    let slots: Map = (0..20_000).map(|number| (slot(number), place(number))).collect();
    let bytes = index_of(&slots).memory_bytes() as f64 / 20_000.0;
    assert!(bytes < 32.0 + 16.0, "{bytes} bytes a key");
}

/// Keys as long as any fit into chunks.
#[test]
fn long_keys_are_keys() {
    let long = |number: u16| [&number.to_be_bytes()[..], &vec![7; 40_000]].concat();
    let map: Map = (0..40).map(|number| (long(number), place(number.into()))).collect();
    agrees(&index_of(&map), &map, (&[], None));
}
