use super::*;

#[test]
fn a_key_is_marked_for_one_chain() {
    let folder = tempfile::tempdir().unwrap();
    let marker = Marker::beside(&folder.path().join("key.toml"));
    let (chain, other) = (ChainId([1; 32]), ChainId([2; 32]));
    assert_eq!(marker.read(chain).unwrap(), None);
    marker.write(chain, Standing::Used).unwrap();
    assert_eq!(marker.read(chain).unwrap(), Some(Standing::Used));
    assert_eq!(marker.read(other).unwrap(), None);
    marker.write(chain, Standing::Lost).unwrap();
    assert_eq!(marker.read(chain).unwrap(), Some(Standing::Lost));
}
