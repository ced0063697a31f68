use super::*;

const SMALL: Sizes = Sizes { block: 200, spill: 4000 };

#[test]
fn what_is_put_is_found_after_flush_and_reopening() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("index");
    let index = Index::open_with(&dir, SMALL).unwrap();
    for i in 0..500u32 {
        index.put(Kind::Heads, format!("https://a.example/{i:04}").into_bytes(), i.to_le_bytes().to_vec()).unwrap();
    }
    index.delete(Kind::Heads, b"https://a.example/0007".to_vec()).unwrap();
    let cursor = Cursor { snapshot: SnapshotId::new("2024-03-01").unwrap(), digest: Digest::of(b"m") };
    index.set_cursor("ingest", cursor.clone());
    index.flush().unwrap();
    for index in [index, Index::open_with(&dir, SMALL).unwrap()] {
        assert_eq!(index.cursor("ingest"), Some(cursor.clone()));
        assert_eq!(index.get(Kind::Heads, b"https://a.example/0007").unwrap(), None);
        assert_eq!(index.get(Kind::Heads, b"https://a.example/0499").unwrap(), Some(499u32.to_le_bytes().to_vec()));
        let mut seen = 0;
        index
            .scan(Kind::Heads, b"https://a.example/00", &mut |_, _| {
                seen += 1;
                Ok(true)
            })
            .unwrap();
        assert_eq!(seen, 99);
    }
}
