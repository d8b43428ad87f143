//! Bindings in a Redis that routers share.
//!
//! A session is the HASH [`SessionKey`] with the fields `modelServer` (the server's name without its namespace), `pod`
//! and `prefillPod` (empty where there is none), and expires by itself. The layout is that of the original router, so
//! that both can use one Redis.

use super::{Binding, Committed, SessionKey};
use ::redis::aio::{ConnectionManager, ConnectionManagerConfig};
use ::redis::io::tcp::TcpSettings;
use ::redis::{
    Client, ErrorKind, IntoConnectionInfo, RedisConnectionInfo, RedisError, Script, ServerErrorKind,
};
use parking_lot::Mutex;
use routing::fleet::ObjectName;
use std::fmt;
use std::time::{Duration, Instant};

/// Longest wait for one call. A request is not worth more: without an answer it is scheduled as if it had no session.
const DEADLINE: Duration = Duration::from_millis(50);
/// Longest wait at the start.
const START: Duration = Duration::from_secs(5);
/// Longest attempt to connect again. Requests do not wait for it beyond their deadline.
const CONNECT: Duration = Duration::from_secs(1);

/// Longest time that a connection may be kept without an answer while it is asked, and shortest time that one is kept. A
/// Redis that hangs, or a balancer before one that is gone, still acknowledges what it never answers.
const SILENCE: Duration = Duration::from_secs(1);

/// Longest time that the other side may leave what was sent unacknowledged. Without it a Redis whose machine is gone is
/// missed only after the kernel's quarter of an hour, and until then nobody connects to the one in its place.
#[cfg(target_os = "linux")]
const UNACKNOWLEDGED: Duration = Duration::from_secs(5);

/// Binds, keeps alive or leaves alone, in one step: KEYS session; ARGV server, pod, prefill, seconds, and the pod and
/// prefill of the binding that may be replaced. Answers with the binding of who was first, or with nothing.
const COMMIT: &str = r"
local held = redis.call('HMGET', KEYS[1], 'pod', 'prefillPod')
local pod, prefill = held[1], held[2] or ''
if pod and not (pod == ARGV[2] and prefill == ARGV[3]) and not (pod == ARGV[5] and prefill == ARGV[6]) then
  return {pod, prefill}
end
redis.call('HSET', KEYS[1], 'modelServer', ARGV[1], 'pod', ARGV[2], 'prefillPod', ARGV[3])
redis.call('EXPIRE', KEYS[1], ARGV[4])
return {}
";

/// Who the router is to Redis. Never shown.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Credentials {
    /// The user; Redis's default user unless set.
    pub username: Option<String>,
    /// The user's password, if one is needed.
    pub password: Option<String>,
}

impl Credentials {
    fn settings(&self) -> RedisConnectionInfo {
        let mut settings = RedisConnectionInfo::default();
        if let Some(username) = &self.username {
            settings = settings.set_username(username);
        }
        if let Some(password) = &self.password {
            settings = settings.set_password(password);
        }
        settings
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials")
    }
}

/// A connection to Redis that is made again when it breaks, or does not answer.
pub struct RedisStore {
    client: Client,
    link: Mutex<Link>,
    commit: Script,
}

struct Link {
    connection: ConnectionManager,
    made: Instant,
    /// Since when nothing was answered.
    silent: Option<Instant>,
}

impl Link {
    fn new(connection: ConnectionManager) -> Self {
        Self {
            connection,
            made: Instant::now(),
            silent: None,
        }
    }
}

/// Why Redis gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum Unavailable {
    /// It did not answer in time.
    #[error("no answer within {} ms", .0.as_millis())]
    Late(Duration),
    /// It answered with an error, or the connection failed.
    #[error("{0}")]
    Failed(#[from] RedisError),
}

impl RedisStore {
    /// Connects, and makes sure that somebody answers.
    ///
    /// # Errors
    /// When nobody does within five seconds, or the credentials do not count. The text begins with
    /// `redis ping for session sticky: `.
    pub async fn connect(address: &str, credentials: &Credentials) -> Result<Self, String> {
        within(START, Self::open(address, credentials))
            .await
            .map_err(|error| format!("redis ping for session sticky: {error}"))
    }

    async fn open(address: &str, credentials: &Credentials) -> Result<Self, RedisError> {
        let place = format!("redis://{address}/").into_connection_info()?;
        let place = place.set_redis_settings(credentials.settings());
        let client = Client::open(place.set_tcp_settings(tcp()))?;
        let mut connection = ConnectionManager::new_with_config(client.clone(), settings()).await?;
        ::redis::cmd("PING")
            .query_async::<()>(&mut connection)
            .await?;
        Ok(Self {
            client,
            link: Mutex::new(Link::new(connection)),
            commit: Script::new(COMMIT),
        })
    }

    /// What the session is bound to.
    ///
    /// # Errors
    /// When Redis gives no answer within 50 ms.
    pub async fn find(&self, key: &SessionKey) -> Result<Option<Binding>, Unavailable> {
        let mut ask = ::redis::cmd("HMGET");
        ask.arg(key.to_string()).arg("pod").arg("prefillPod");
        let mut connection = self.link.lock().connection.clone();
        let answer = within(DEADLINE, ask.query_async(&mut connection)).await;
        self.note(answer.as_ref().err());
        let (pod, prefill): (Option<String>, Option<String>) = answer?;
        Ok(pod.map(|pod| binding(key, &pod, &prefill.unwrap_or_default())))
    }

    /// Binds a session that is not bound, or bound to `replaces`; what is bound so already lives on.
    ///
    /// # Errors
    /// When Redis gives no answer within 50 ms.
    pub async fn commit(
        &self,
        key: &SessionKey,
        replaces: Option<&Binding>,
        binding: &Binding,
        affinity: Duration,
    ) -> Result<Committed, Unavailable> {
        let (pod, prefill) = names(binding);
        let (old_pod, old_prefill) = replaces.map_or(("", ""), names);
        let mut call = self.commit.key(key.to_string());
        call.arg(key.server().name()).arg(pod).arg(prefill);
        call.arg(affinity.as_secs().max(1));
        call.arg(old_pod).arg(old_prefill);
        let mut connection = self.link.lock().connection.clone();
        let answer = within(DEADLINE, call.invoke_async(&mut connection)).await;
        self.note(answer.as_ref().err());
        let held: Vec<String> = answer?;
        Ok(match &held[..] {
            [pod, prefill] => Committed::Other(self::binding(key, pod, prefill)),
            _ => Committed::Ours,
        })
    }

    /// Notes how a call ended, and gives the connection up if another one is the better hope: if it does not answer, or if
    /// it leads to a Redis that has become a replica since.
    fn note(&self, trouble: Option<&Unavailable>) {
        let mut link = self.link.lock();
        let (silent, given_up) = match trouble {
            Some(Unavailable::Late(_)) => {
                let since = *link.silent.get_or_insert_with(Instant::now);
                (Some(since), since.elapsed() >= SILENCE)
            }
            Some(Unavailable::Failed(error)) => (
                None,
                error.kind() == ErrorKind::Server(ServerErrorKind::ReadOnly),
            ),
            None => (None, false),
        };
        link.silent = silent;
        if given_up
            && link.made.elapsed() >= SILENCE
            && let Ok(fresh) =
                ConnectionManager::new_lazy_with_config(self.client.clone(), settings())
        {
            *link = Link::new(fresh);
        }
    }
}

/// Without retries of its own a manager that cannot connect fails at once, instead of holding every request for its whole
/// deadline. The next request makes it try again.
fn settings() -> ConnectionManagerConfig {
    ConnectionManagerConfig::new()
        .set_number_of_retries(0)
        .set_connection_timeout(Some(CONNECT))
}

fn tcp() -> TcpSettings {
    let settings = TcpSettings::default().set_nodelay(true);
    #[cfg(target_os = "linux")]
    let settings = settings.set_user_timeout(UNACKNOWLEDGED);
    settings
}

async fn within<T>(
    limit: Duration,
    call: impl Future<Output = Result<T, RedisError>>,
) -> Result<T, Unavailable> {
    match tokio::time::timeout(limit, call).await {
        Ok(answer) => answer.map_err(Unavailable::Failed),
        Err(_) => Err(Unavailable::Late(limit)),
    }
}

fn names(binding: &Binding) -> (&str, &str) {
    let prefill = binding.prefill.as_ref().map_or("", |pod| pod.name());
    (binding.pod.name(), prefill)
}

fn binding(key: &SessionKey, pod: &str, prefill: &str) -> Binding {
    let named = |name: &str| ObjectName::new(key.server().namespace(), name);
    Binding {
        pod: named(pod),
        prefill: Some(prefill).filter(|p| !p.is_empty()).map(named),
    }
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RedisStore")
    }
}
