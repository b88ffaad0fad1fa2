use super::*;
use rustls::{ClientConnection, ServerConnection};

fn secret(seed: u8) -> IdentitySecret {
    IdentitySecret::from_seed([seed; 32])
}

/// Runs a handshake in memory.
fn shake(client: &mut ClientConnection, server: &mut ServerConnection) -> Result<(), Error> {
    for _ in 0..10 {
        let mut wire = Vec::new();
        client.write_tls(&mut wire).expect("memory");
        let mut rest = &wire[..];
        while !rest.is_empty() {
            server.read_tls(&mut rest).expect("memory");
            server.process_new_packets()?;
        }
        let mut wire = Vec::new();
        server.write_tls(&mut wire).expect("memory");
        let mut rest = &wire[..];
        while !rest.is_empty() {
            client.read_tls(&mut rest).expect("memory");
            client.process_new_packets()?;
        }
    }
    Ok(())
}

fn pair(expected: u8, actual: u8) -> (ClientConnection, ServerConnection) {
    let dialer = Dialer::new(&secret(1)).unwrap().to(secret(expected).public()).unwrap();
    let listener = listener(&secret(actual)).unwrap();
    (ClientConnection::new(dialer, no_name()).unwrap(), ServerConnection::new(listener).unwrap())
}

#[test]
fn each_end_learns_the_key_that_the_other_proved() {
    let (mut client, mut server) = pair(2, 2);
    shake(&mut client, &mut server).unwrap();
    assert!(!client.is_handshaking() && !server.is_handshaking());
    assert_eq!(proven_key(&client), Some(secret(2).public()));
    assert_eq!(proven_key(&server), Some(secret(1).public()));
    assert!(speaks_quorate(&client) && speaks_quorate(&server));
    assert_eq!(client.protocol_version(), Some(rustls::ProtocolVersion::TLSv1_3));
}

#[test]
fn a_dialer_refuses_any_key_but_the_expected_one() {
    let (mut client, mut server) = pair(2, 3);
    assert_eq!(
        shake(&mut client, &mut server),
        Err(CertificateError::ApplicationVerificationFailure.into())
    );
}

#[test]
fn a_key_survives_its_encoding() {
    let key = secret(9).public();
    assert_eq!(parse_spki(&spki(&key)), Some(key));
    assert_eq!(parse_spki(&spki(&key)[..43]), None);
    assert_eq!(parse_spki(&[spki(&key), vec![0]].concat()), None);
}
