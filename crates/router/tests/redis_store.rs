//! The shared store against a real Redis: here, and not beside the store, since one build script is enough to say whether
//! there is a Redis.

use e2e::{Redis, until};
use proxy::sticky::{Binding, Committed, Credentials, RedisStore, SessionKey};
use routing::fleet::ObjectName;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

const TTL: Duration = Duration::from_secs(300);

async fn connect(address: &str) -> Result<RedisStore, String> {
    RedisStore::connect(address, &Credentials::default()).await
}

fn key(session: &str) -> SessionKey {
    SessionKey::new(&ObjectName::new("team", "m"), session.as_bytes())
}

fn pod(name: &str) -> Binding {
    Binding {
        pod: ObjectName::new("team", name),
        prefill: None,
    }
}

fn pair(decode: &str, prefill: &str) -> Binding {
    Binding {
        prefill: Some(ObjectName::new("team", prefill)),
        ..pod(decode)
    }
}

#[tokio::test]
#[cfg_attr(not(redis_server), ignore = "no redis-server on the PATH")]
async fn j2_the_layout_in_redis() {
    let redis = Redis::start().await;
    let store = connect(&redis.address()).await.unwrap();
    store
        .commit(&key("s"), None, &pod("m:p0"), TTL)
        .await
        .unwrap();
    let keys: Vec<String> = redis.ask(&["KEYS", "*"]).await;
    assert_eq!(keys, [key("s").to_string()]);
    let fields = async |session: &str| -> BTreeMap<String, String> {
        redis.ask(&["HGETALL", &key(session).to_string()]).await
    };
    let wanted = |pod: &str, prefill: &str| {
        let fields = [("modelServer", "m"), ("pod", pod), ("prefillPod", prefill)];
        fields.map(|(k, v)| (k.to_owned(), v.to_owned())).into()
    };
    assert_eq!(fields("s").await, wanted("m:p0", ""));
    let ttl: u64 = redis.ask(&["TTL", &keys[0]]).await;
    assert!((295..=300).contains(&ttl), "{ttl}");
    let two = pair("m:d", "m:p");
    store.commit(&key("pair"), None, &two, TTL).await.unwrap();
    assert_eq!(fields("pair").await, wanted("m:d", "m:p"));
    assert_eq!(store.find(&key("pair")).await.unwrap(), Some(two));
}

#[tokio::test]
#[cfg_attr(not(redis_server), ignore = "no redis-server on the PATH")]
async fn j2_in_redis_the_first_writer_wins_too() {
    let redis = Redis::start().await;
    let store = connect(&redis.address()).await.unwrap();
    let s = key("s");
    let commit = async |replaces: Option<&Binding>, to: &Binding| {
        store.commit(&s, replaces, to, TTL).await.unwrap()
    };
    let (a, b, c) = (pod("a"), pod("b"), pair("a", "x"));
    assert_eq!(store.find(&s).await.unwrap(), None);
    assert_eq!(commit(None, &a).await, Committed::Ours);
    assert_eq!(commit(None, &b).await, Committed::Other(a.clone()));
    assert_eq!(commit(Some(&b), &c).await, Committed::Other(a.clone()));
    assert_eq!(store.find(&s).await.unwrap(), Some(a.clone()));
    assert_eq!(
        commit(Some(&a), &c).await,
        Committed::Ours,
        "who saw it replaces it"
    );
    assert_eq!(commit(Some(&a), &b).await, Committed::Other(c.clone()));
    assert_eq!(commit(Some(&c), &b).await, Committed::Ours);
    assert_eq!(store.find(&s).await.unwrap(), Some(b));
}

#[tokio::test]
#[cfg_attr(not(redis_server), ignore = "no redis-server on the PATH")]
async fn j2_in_redis_a_commit_slides_the_end() {
    let redis = Redis::start().await;
    let store = connect(&redis.address()).await.unwrap();
    let (s, name) = (key("s"), key("s").to_string());
    store.commit(&s, None, &pod("a"), TTL).await.unwrap();
    let _: i64 = redis.ask(&["EXPIRE", &name, "5"]).await;
    assert!(store.find(&s).await.unwrap().is_some());
    let ttl: u64 = redis.ask(&["TTL", &name]).await;
    assert!(ttl <= 5, "looking is not using: {ttl}");
    store
        .commit(&s, Some(&pod("a")), &pod("a"), TTL)
        .await
        .unwrap();
    let ttl: u64 = redis.ask(&["TTL", &name]).await;
    assert!(ttl > 290, "{ttl}");
    // Another request's attempt does not.
    let _: i64 = redis.ask(&["EXPIRE", &name, "5"]).await;
    store.commit(&s, None, &pod("b"), TTL).await.unwrap();
    let ttl: u64 = redis.ask(&["TTL", &name]).await;
    assert!(ttl <= 5, "{ttl}");
}

#[tokio::test]
#[cfg_attr(not(redis_server), ignore = "no redis-server on the PATH")]
async fn j2_what_others_wrote_is_no_reason_to_fail() {
    let redis = Redis::start().await;
    let store = connect(&redis.address()).await.unwrap();
    let (s, name) = (key("s"), key("s").to_string());
    // As the original writes it, and less than that.
    let _: i64 = redis
        .ask(&["HSET", &name, "pod", "a/b", "modelServer", "m"])
        .await;
    let strange = store.find(&s).await.unwrap().unwrap();
    assert_eq!(
        (strange.pod.name(), strange.prefill.as_ref()),
        ("a/b", None)
    );
    let replaced = store
        .commit(&s, Some(&strange), &pod("a"), TTL)
        .await
        .unwrap();
    assert_eq!(replaced, Committed::Ours);
    let _: String = redis.ask(&["SET", &name, "no hash"]).await;
    assert!(store.find(&s).await.is_err());
    assert!(store.commit(&s, None, &pod("a"), TTL).await.is_err());
}

#[tokio::test]
#[cfg_attr(not(redis_server), ignore = "no redis-server on the PATH")]
async fn j2_a_redis_that_is_away_costs_50_ms_and_comes_back() {
    let mut redis = Redis::start().await;
    let store = connect(&redis.address()).await.unwrap();
    let s = key("s");
    redis.freeze();
    let late = store.find(&s).await.unwrap_err().to_string();
    assert_eq!(late, "no answer within 50 ms");
    redis.thaw();
    until("the store answers again", async || {
        store.find(&s).await.ok()
    })
    .await;
    redis.kill().await;
    assert!(store.find(&s).await.is_err());
    assert!(store.commit(&s, None, &pod("a"), TTL).await.is_err());
    redis.again().await;
    let bound = async || store.commit(&s, None, &pod("a"), TTL).await.ok();
    let bound = until("the store connects again", bound).await;
    assert_eq!(
        bound,
        Committed::Ours,
        "a fresh Redis does not know the script"
    );
}

/// A balancer before a Redis.
struct Balancer {
    address: String,
    connections: Arc<AtomicUsize>,
    /// How many of the first connections are never answered again, though they stay open.
    silent: watch::Sender<usize>,
}

impl Balancer {
    async fn before(redis: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("bound").to_string();
        let connections = Arc::new(AtomicUsize::new(0));
        let silent = watch::Sender::new(0);
        let (count, silenced) = (Arc::clone(&connections), silent.subscribe());
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let number = count.fetch_add(1, Relaxed) + 1;
                let mut server = TcpStream::connect(&redis).await.expect("Redis");
                let mut silenced = silenced.clone();
                tokio::spawn(async move {
                    let hush = async {
                        let _ = silenced.wait_for(|first| *first >= number).await;
                    };
                    let is_silent = tokio::select! {
                        () = hush => true,
                        _ = tokio::io::copy_bidirectional(&mut client, &mut server) => false,
                    };
                    if is_silent {
                        // What comes is read, so that everything is acknowledged.
                        let _ = tokio::io::copy(&mut client, &mut tokio::io::sink()).await;
                    }
                });
            }
        });
        Self {
            address,
            connections,
            silent,
        }
    }

    fn connections(&self) -> usize {
        self.connections.load(Relaxed)
    }
}

#[tokio::test]
#[cfg_attr(not(redis_server), ignore = "no redis-server on the PATH")]
async fn j2_a_connection_that_does_not_answer_is_given_up() {
    let redis = Redis::start().await;
    let balancer = Balancer::before(redis.address()).await;
    let store = connect(&balancer.address).await.unwrap();
    let s = key("s");
    store.commit(&s, None, &pod("a"), TTL).await.unwrap();
    assert_eq!(balancer.connections(), 1);
    balancer.silent.send_replace(1);
    for _ in 0..2 {
        // One late answer is no reason.
        assert!(store.find(&s).await.is_err());
    }
    assert_eq!(balancer.connections(), 1);
    let found = until("a new connection answers", async || {
        store.find(&s).await.ok()
    })
    .await;
    assert_eq!((found, balancer.connections()), (Some(pod("a")), 2));
}

#[tokio::test]
#[cfg_attr(not(redis_server), ignore = "no redis-server on the PATH")]
async fn j2_a_redis_that_became_a_replica_is_given_up() {
    let redis = Redis::start().await;
    let balancer = Balancer::before(redis.address()).await;
    let store = connect(&balancer.address).await.unwrap();
    let _: String = redis.ask(&["REPLICAOF", "127.0.0.1", "1"]).await;
    // As a service whose name leads to the new master by now.
    until("it connects again", async || {
        let refused = store.commit(&key("s"), None, &pod("a"), TTL).await;
        assert!(refused.is_err());
        (balancer.connections() == 2).then_some(())
    })
    .await;
}

#[tokio::test]
#[cfg_attr(not(redis_server), ignore = "no redis-server on the PATH")]
async fn j2_a_redis_with_a_password_wants_that_one() {
    let redis = Redis::start_with("s3cret").await;
    let with = async |username: Option<&str>, password: Option<&str>| {
        let credentials = Credentials {
            username: username.map(str::to_owned),
            password: password.map(str::to_owned),
        };
        assert_eq!(format!("{credentials:?}"), "Credentials");
        RedisStore::connect(&redis.address(), &credentials).await
    };
    for username in [None, Some("default")] {
        let store = with(username, Some("s3cret")).await.unwrap();
        let did = store.commit(&key("s"), None, &pod("a"), TTL).await;
        assert_eq!(did.unwrap(), Committed::Ours);
    }
    let refused = [
        (None, None),
        (None, Some("wr0ng")),
        (Some("other"), Some("s3cret")),
    ];
    for (username, password) in refused {
        let why = with(username, password).await.unwrap_err();
        assert!(why.starts_with("redis ping for session sticky: "), "{why}");
        assert!(!why.contains("s3cret") && !why.contains("wr0ng"), "{why}");
    }
}

#[tokio::test]
#[cfg_attr(not(redis_server), ignore = "no redis-server on the PATH")]
async fn j2_without_redis_there_is_no_store() {
    let mut redis = Redis::start().await;
    let address = redis.address();
    redis.kill().await;
    let why = connect(&address).await.unwrap_err();
    assert!(why.starts_with("redis ping for session sticky: "), "{why}");
}

/// The gate installs a Redis; on a machine without one the tests that want it are ignored.
#[test]
fn in_ci_the_tests_with_redis_are_not_ignored() {
    let in_ci = std::env::var("CI").is_ok_and(|ci| ci == "true");
    assert!(
        cfg!(redis_server) || !in_ci,
        "there was no redis-server on the PATH when the tests were built"
    );
}
