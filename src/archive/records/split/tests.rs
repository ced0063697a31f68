use proptest::prelude::*;

use super::*;
use crate::archive::CaptureReader as _;
use crate::archive::layouts::Warc;
use crate::archive::records::RecordFile;
use crate::lab::archives::samples::{gzip, noise, record, response, zstd_file, zstd_frame};
use crate::model::Body;

type Read = (Vec<String>, bool);

/// Everything that comes out of a reader, and whether it misread.
fn read(readers: Vec<RecordFile>) -> Read {
    let (mut items, mut misread) = (Vec::new(), false);
    for mut reader in readers {
        for item in reader.by_ref() {
            items.push(match item {
                Ok(capture) => {
                    let Body::Bytes(body) = &capture.body else { panic!("{capture:?}") };
                    let digest = crate::model::Digest::of(body);
                    format!(
                        "{} {} {} {digest:?} {:?}",
                        capture.source_offset, capture.source_file, capture.url, capture.truncated
                    )
                }
                Err(reject) => format!("{reject:?}"),
            });
        }
        misread |= reader.misread();
    }
    (items, misread)
}

/// Read whole, and in pieces of about `size` bytes; the number of pieces.
fn both(file: &[u8], size: u64) -> (Read, Read, usize) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.warc.gz");
    fs_err::write(&path, file).unwrap();
    let source = Source::File(path);
    let reader = || RecordFile::new(source.clone(), &Warc, "x.warc.gz".to_owned());
    let pieces = split(&source, &Warc, size).unwrap();
    assert!(pieces.windows(2).all(|pair| pair[0].to == Some(pair[1].from)) && pieces[0].from == 0);
    let count = pieces.len();
    (read(vec![reader()]), read(pieces.into_iter().map(|piece| reader().piece(piece)).collect()), count)
}

fn records(count: usize, length: usize) -> Vec<Vec<u8>> {
    (0..count).map(|i| response(&format!("http://a.org/{i}"), &noise(i, length))).collect()
}

#[test]
fn pieces_give_what_the_whole_gives() {
    let members: Vec<u8> = records(60, 30_000).iter().flat_map(|record| gzip(record)).collect();
    let (whole, pieces, count) = both(&members, 200_000);
    assert_eq!((whole.0.len(), whole.1), (60, false));
    assert_eq!(whole, pieces);
    assert!(count > 4, "{count}");
    let frames = zstd_file(&records(60, 30_000), b"a dictionary", false);
    let (whole, pieces, count) = both(&frames, 200_000);
    assert_eq!(whole, pieces);
    assert!(whole.0.len() == 60 && count > 4, "{count}");
    assert_eq!(both(&zstd_frame(&records(60, 30_000).concat(), b""), 200_000).2, 1, "one frame is one piece");
    assert_eq!(both(&records(60, 30_000).concat(), 200_000).2, 1, "reading plain files is no work");
}

/// What stands behind a record in its member is one reject, and the record of the next member is read, whoever reads it.
#[test]
fn rubbish_behind_a_record_swallows_nothing() {
    for rubbish in [&b"rubbish"[..], b"rubbish\n", b"WARC/", b"WARC/1.0", b"\r\n\r\nx\r\ny"] {
        let mut all = records(6, 2_000);
        all[2].extend_from_slice(rubbish);
        let members: Vec<u8> = all.iter().flat_map(|record| gzip(record)).collect();
        let (whole, pieces, count) = both(&members, 1_000);
        assert!(count > 4, "{count}");
        assert_eq!(
            whole.0.iter().filter(|item| item.contains("http://a.org/")).count(),
            6,
            "{rubbish:?} {:?}",
            whole.0
        );
        assert!(pieces.1 || whole.0 == pieces.0, "{rubbish:?} {:?} {:?}", whole.0, pieces.0);
    }
}

/// A file that begins with something else says so once, and has all its records.
#[test]
fn rubbish_before_the_first_record() {
    for rubbish in [&b"rubbish"[..], b"rubbish\n", &noise(7, 3_000)] {
        let mut all = records(6, 2_000);
        all[0] = rubbish.to_vec();
        let members: Vec<u8> = all.iter().flat_map(|record| gzip(record)).collect();
        for size in [500, 1_000, 3_000] {
            let (whole, pieces, _) = both(&members, size);
            assert_eq!(whole.0.len(), 6, "{:?}", whole.0);
            assert!(whole.0[0].contains("bytes here are no WARC record"), "{:?}", whole.0);
            assert!(pieces.1 || whole.0 == pieces.0, "{size} {:?} {:?}", whole.0, pieces.0);
        }
    }
}

/// Such a member is no place to split at: it would be the first of a file to one reader, and foreign to another.
#[test]
fn members_that_start_almost_like_a_record() {
    for start in [&b"WARC/x"[..], b"WARC/1.0", b"WARC/1.0 and more\r\n", b"WARC/\r\nWARC/1.0\r\n"] {
        let mut all = records(6, 2_000);
        all[3] = [start, &noise(9, 2_000)].concat();
        all[5] = start.to_vec();
        let members: Vec<u8> = all.iter().flat_map(|record| gzip(record)).collect();
        for size in [700, 1_000, 1_500, 3_000] {
            let (whole, pieces, _) = both(&members, size);
            assert!(pieces.1 || whole.0 == pieces.0, "{start:?} {size} {:?} {:?}", whole.0, pieces.0);
        }
    }
}

/// A page that is an archive itself, stored as it is: its records are not ours.
#[test]
fn an_archive_in_an_archive() {
    let stored = |bytes: &[u8]| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
        std::io::Write::write_all(&mut encoder, bytes).unwrap();
        encoder.finish().unwrap()
    };
    let inner: Vec<u8> = records(40, 12_000).iter().flat_map(|record| gzip(record)).collect();
    let mut file: Vec<u8> = Vec::new();
    for i in 0..4 {
        file.extend(gzip(&response(&format!("http://b.org/{i}"), &noise(i, 100_000))));
        file.extend(stored(&response(&format!("http://b.org/inner{i}"), &inner)));
    }
    for size in [50_000, 150_000, 300_000, 700_000] {
        let (whole, pieces, _) = both(&file, size);
        assert_eq!(whole.0.len(), 8);
        assert!(pieces.1 || whole == pieces, "{size}");
        // The stored blocks of the outer archive break every chain.
        assert_eq!(whole, pieces, "{size}");
    }
}

/// A false place that passed: the reader before it notices.
#[test]
fn a_piece_that_ends_inside_a_member_is_noticed() {
    let members: Vec<Vec<u8>> = records(3, 30_000).iter().map(|record| gzip(record)).collect();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.warc.gz");
    fs_err::write(&path, members.concat()).unwrap();
    let reader = || RecordFile::new(Source::File(path.clone()), &Warc, "x".to_owned());
    let first = members[0].len() as u64;
    for (to, misread) in [(first, false), (first - 1, true), (first + 1, true), (first + 5000, true)] {
        let (_, found) = read(vec![reader().piece(Piece { from: 0, to: Some(to) })]);
        assert_eq!(found, misread, "{to}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Pieces give the same captures and rejects in the same order with the same offsets as one reader, or say that
    /// they do not; on sound files always the former.
    #[test]
    fn pieces_equal_the_whole_or_say_so(
        seed in 0usize..1000,
        count in 1usize..40,
        length in 200usize..40_000,
        size in 20_000u64..200_000,
        zstd in any::<bool>(),
        several in 1usize..3,
        requests in any::<bool>(),
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3),
    ) {
        let mut all = vec![record("warcinfo", &[], b"a: b\r\n")];
        for i in 0..count {
            if requests {
                all.push(record("request", &[("WARC-Target-URI", "http://a/")], b"GET / HTTP/1.1\r\n\r\n"));
            }
            all.push(response(&format!("http://a.org/{i}"), &noise(seed + i, length)));
        }
        // Some writers put two records into a member.
        let groups: Vec<Vec<u8>> = all.chunks(several).map(<[Vec<u8>]>::concat).collect();
        let mut file = if zstd {
            zstd_file(&groups, b"", false)
        } else {
            groups.iter().flat_map(|group| gzip(group)).collect()
        };
        for (at, byte) in &damage {
            let at = at.index(file.len());
            file[at] = *byte;
        }
        let (whole, pieces, _) = both(&file, size);
        prop_assert!(!pieces.1 || !damage.is_empty(), "a sound file is never misread");
        prop_assert!(pieces.1 || whole == pieces);
    }
}
