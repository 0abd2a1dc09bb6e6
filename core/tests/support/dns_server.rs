//! A DNS server that plays a script: what it answers is set per name and type, while it runs.
//!
//! It listens on UDP and TCP of one loopback port, on plain threads, and needs nothing of the crate
//! under test, so that unit tests and black-box tests share it.

#![allow(dead_code, clippy::unwrap_used)]

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use hickory_proto::op::{Message, MessageType, ResponseCode};
use hickory_proto::rr::rdata::{CNAME, SOA, SRV};
use hickory_proto::rr::{Name, RData, Record, RecordType};

/// What the server says about one name and type. A name that has an answer for another type only
/// gives [`Answer::NoData`]; an unknown name gives NXDOMAIN without a start-of-authority record.
#[derive(Debug, Clone)]
pub enum Answer {
    /// Address records in this order. Those of the other family than the asked one are left out.
    Records { ips: Vec<IpAddr>, ttl: u32 },
    /// Address records, each with a time to live of its own.
    Each(Vec<(IpAddr, u32)>),
    /// SRV records: priority, weight, port, target (absolute, `.` for none).
    Servers {
        list: Vec<(u16, u16, u16, String)>,
        ttl: u32,
    },
    /// An alias, and the addresses of its target in the same message.
    Alias {
        target: String,
        alias_ttl: u32,
        ips: Vec<IpAddr>,
        ttl: u32,
    },
    /// No such name; with `negative_ttl` a start-of-authority record carries it (RFC 2308).
    NxDomain { negative_ttl: Option<u32> },
    /// The name exists, but has no record of this type.
    NoData,
    /// The server could not find out.
    ServFail,
    /// The server doesn't want to say.
    Refused,
    /// The server doesn't understand the question.
    FormErr,
    /// Over UDP an answer that is cut off, and over TCP the connection is closed.
    Truncated,
    /// Nothing is sent back.
    Silence,
}

#[derive(Default)]
struct Script {
    answers: HashMap<(String, RecordType), Answer>,
    queries: Vec<(String, RecordType)>,
    tcp_queries: usize,
    largest_udp_payload: u16,
}

#[derive(Default)]
struct Shared {
    script: Mutex<Script>,
    asked: Condvar,
    stop: AtomicBool,
}

/// The running server; it stops when dropped.
pub struct DnsServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl DnsServer {
    /// Starts on a loopback port that the system chooses.
    pub fn start() -> DnsServer {
        // The port is free on UDP; another process may hold it on TCP, so try a few.
        for _ in 0..50 {
            let udp = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            if let Ok(tcp) = TcpListener::bind(udp.local_addr().unwrap()) {
                return Self::run(udp, tcp);
            }
        }
        panic!("no port that is free on both UDP and TCP");
    }

    /// Starts on a known address, for a server that comes up late or comes back.
    pub fn start_at(address: SocketAddr) -> io::Result<DnsServer> {
        let udp = UdpSocket::bind(address)?;
        let tcp = TcpListener::bind(address)?;
        Ok(Self::run(udp, tcp))
    }

    /// An address that nothing listens on at the moment, for [`DnsServer::start_at`].
    pub fn free_address() -> SocketAddr {
        let server = Self::start();
        server.addr()
    }

    fn run(udp: UdpSocket, tcp: TcpListener) -> DnsServer {
        let address = udp.local_addr().unwrap();
        let shared = Arc::new(Shared::default());
        let on_udp = shared.clone();
        let on_tcp = shared.clone();
        let threads = vec![
            std::thread::spawn(move || serve_udp(&udp, &on_udp)),
            std::thread::spawn(move || serve_tcp(&tcp, &on_tcp)),
        ];
        DnsServer {
            address,
            shared,
            threads,
        }
    }

    /// Where it listens, UDP and TCP.
    pub fn addr(&self) -> SocketAddr {
        self.address
    }

    /// Sets what is answered from now on. `name` is absolute; case and a trailing dot don't matter.
    pub fn set(&self, name: &str, kind: RecordType, answer: Answer) {
        let mut script = self.shared.script.lock().unwrap();
        script.answers.insert((normal(name), kind), answer);
    }

    /// A shorthand: A records with these addresses.
    pub fn set_a(&self, name: &str, ttl: u32, ips: &[&str]) {
        let ips = ips.iter().map(|ip| ip.parse().unwrap()).collect();
        self.set(name, RecordType::A, Answer::Records { ips, ttl });
    }

    /// A shorthand: SRV records (priority, weight, port, target).
    pub fn set_srv(&self, name: &str, ttl: u32, list: &[(u16, u16, u16, &str)]) {
        let list = list
            .iter()
            .map(|(priority, weight, port, target)| {
                (*priority, *weight, *port, (*target).to_owned())
            })
            .collect();
        self.set(name, RecordType::SRV, Answer::Servers { list, ttl });
    }

    /// All questions so far, names in lower case without a trailing dot.
    pub fn queries(&self) -> Vec<(String, RecordType)> {
        self.shared.script.lock().unwrap().queries.clone()
    }

    /// How many questions for this name and type came in so far.
    pub fn count(&self, name: &str, kind: RecordType) -> usize {
        let wanted = (normal(name), kind);
        let script = self.shared.script.lock().unwrap();
        script.queries.iter().filter(|q| **q == wanted).count()
    }

    /// How many of the questions came over TCP.
    pub fn tcp_queries(&self) -> usize {
        self.shared.script.lock().unwrap().tcp_queries
    }

    /// The largest UDP answer that a client offered to take (512 without EDNS).
    pub fn largest_udp_payload(&self) -> u16 {
        self.shared.script.lock().unwrap().largest_udp_payload
    }

    /// Waits until `count` questions for this name and type have come in; false at the deadline.
    pub fn wait_for(&self, name: &str, kind: RecordType, count: usize, limit: Duration) -> bool {
        let wanted = (normal(name), kind);
        let deadline = Instant::now() + limit;
        let mut script = self.shared.script.lock().unwrap();
        while script.queries.iter().filter(|q| **q == wanted).count() < count {
            let Some(left) = deadline.checked_duration_since(Instant::now()) else {
                return false;
            };
            script = self.shared.asked.wait_timeout(script, left).unwrap().0;
        }
        true
    }
}

impl Drop for DnsServer {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        // Both threads wait for a peer: give each one.
        if let Ok(socket) = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)) {
            let _ = socket.send_to(&[], self.address);
        }
        let _ = TcpStream::connect(self.address);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn normal(name: &str) -> String {
    name.trim_end_matches('.').to_ascii_lowercase()
}

fn serve_udp(socket: &UdpSocket, shared: &Shared) {
    let mut buffer = [0; 4096];
    while let Ok((length, peer)) = socket.recv_from(&mut buffer) {
        if shared.stop.load(Ordering::SeqCst) {
            return;
        }
        let Ok(query) = Message::from_vec(&buffer[..length]) else {
            continue;
        };
        let limit = query.max_payload();
        let Some(response) = respond(&query, shared, Some(limit)) else {
            continue;
        };
        let mut bytes = response.to_vec().unwrap();
        if response.metadata.truncation {
            let _ = socket.send_to(&bytes, peer);
            continue;
        }
        if bytes.len() > usize::from(limit) {
            bytes = response.truncate().to_vec().unwrap();
        }
        let _ = socket.send_to(&bytes, peer);
    }
}

fn serve_tcp(listener: &TcpListener, shared: &Arc<Shared>) {
    for stream in listener.incoming() {
        if shared.stop.load(Ordering::SeqCst) {
            return;
        }
        if let Ok(stream) = stream {
            let shared = shared.clone();
            // Ends when the client closes; nothing waits for it.
            std::thread::spawn(move || while answer_tcp(&stream, &shared).is_ok() {});
        }
    }
}

fn answer_tcp(mut stream: &TcpStream, shared: &Shared) -> io::Result<()> {
    let mut length = [0; 2];
    stream.read_exact(&mut length)?;
    let mut query = vec![0; usize::from(u16::from_be_bytes(length))];
    stream.read_exact(&mut query)?;
    let query = Message::from_vec(&query).map_err(io::Error::other)?;
    if let Some(response) = respond(&query, shared, None) {
        if response.metadata.truncation {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        let bytes = response.to_vec().map_err(io::Error::other)?;
        let length = u16::try_from(bytes.len()).map_err(io::Error::other)?;
        stream.write_all(&length.to_be_bytes())?;
        stream.write_all(&bytes)?;
    }
    Ok(())
}

fn respond(query: &Message, shared: &Shared, udp_payload: Option<u16>) -> Option<Message> {
    let question = query.queries.first()?.clone();
    let key = (normal(&question.name().to_ascii()), question.query_type());
    let answer = {
        let mut script = shared.script.lock().unwrap();
        script.queries.push(key.clone());
        match udp_payload {
            Some(payload) => {
                script.largest_udp_payload = script.largest_udp_payload.max(payload);
            }
            None => script.tcp_queries += 1,
        }
        let known = || script.answers.keys().any(|(name, _)| *name == key.0);
        match script.answers.get(&key) {
            Some(answer) => answer.clone(),
            None if known() => Answer::NoData,
            None => Answer::NxDomain { negative_ttl: None },
        }
    };
    shared.asked.notify_all();

    let mut response = Message::new(
        query.metadata.id,
        MessageType::Response,
        query.metadata.op_code,
    );
    response.metadata.recursion_desired = query.metadata.recursion_desired;
    response.metadata.recursion_available = true;
    response.add_query(question.clone());
    let name = question.name().clone();
    match answer {
        Answer::Records { ips, ttl } => add(&mut response, &name, key.1, &ips, ttl),
        Answer::Each(ips) => {
            for (ip, ttl) in ips {
                add(&mut response, &name, key.1, &[ip], ttl);
            }
        }
        Answer::Servers { list, ttl } => {
            for (priority, weight, port, target) in list {
                let target = match normal(&target).as_str() {
                    "" => Name::root(),
                    target => format!("{target}.").parse().unwrap(),
                };
                let data = RData::SRV(SRV::new(priority, weight, port, target));
                response.add_answer(Record::from_rdata(name.clone(), ttl, data));
            }
        }
        Answer::Alias {
            target,
            alias_ttl,
            ips,
            ttl,
        } => {
            let target: Name = format!("{}.", normal(&target)).parse().unwrap();
            let alias = RData::CNAME(CNAME(target.clone()));
            response.add_answer(Record::from_rdata(name, alias_ttl, alias));
            add(&mut response, &target, key.1, &ips, ttl);
        }
        Answer::NxDomain { negative_ttl } => {
            response.metadata.response_code = ResponseCode::NXDomain;
            if let Some(ttl) = negative_ttl {
                let soa = SOA::new(Name::root(), Name::root(), 1, 60, 60, 60, ttl);
                response.add_authority(Record::from_rdata(Name::root(), ttl, RData::SOA(soa)));
            }
        }
        Answer::NoData => {}
        Answer::ServFail => response.metadata.response_code = ResponseCode::ServFail,
        Answer::Refused => response.metadata.response_code = ResponseCode::Refused,
        Answer::FormErr => response.metadata.response_code = ResponseCode::FormErr,
        Answer::Truncated => response.metadata.truncation = true,
        Answer::Silence => return None,
    }
    Some(response)
}

fn add(response: &mut Message, name: &Name, kind: RecordType, ips: &[IpAddr], ttl: u32) {
    for ip in ips {
        let data = RData::from(*ip);
        if data.record_type() == kind {
            response.add_answer(Record::from_rdata(name.clone(), ttl, data));
        }
    }
}
