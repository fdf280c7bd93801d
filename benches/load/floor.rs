//! The floors: a bare actix handler that answers the same bytes, and one that does a single `GET` first, in a process of
//! their own.

use actix_web::{App, HttpResponse, HttpServer, web};
use redis::aio::MultiplexedConnection;

/// The environment variable that makes this program a floor; it holds the body to answer.
pub(crate) const BODY: &str = "SIDEGATE_LOAD_FLOOR";
/// The environment variable with the Redis that is asked first, if one is.
pub(crate) const REDIS: &str = "SIDEGATE_LOAD_REDIS";
/// The key that is asked for.
pub(crate) const KEY: &str = "floor";

type Redis = Option<MultiplexedConnection>;

/// Serves until the process is killed. The first line of output is the address.
pub(crate) fn serve(body: String) {
    let body = web::Data::new(body);
    actix_web::rt::System::new()
        .block_on(async {
            let redis: Redis = match std::env::var(REDIS) {
                Ok(url) => {
                    let client = redis::Client::open(url).unwrap();
                    Some(client.get_multiplexed_async_connection().await.unwrap())
                }
                Err(_) => None,
            };
            let redis = web::Data::new(redis);
            let app = move || {
                let app = App::new().app_data(body.clone()).app_data(redis.clone());
                app.route("/", web::get().to(answer))
            };
            let server = HttpServer::new(app).disable_signals().bind(("127.0.0.1", 0))?;
            println!("{}", server.addrs()[0]);
            server.run().await
        })
        .unwrap();
}

async fn answer(body: web::Data<String>, redis: web::Data<Redis>) -> HttpResponse {
    if let Some(redis) = &**redis {
        let value: Vec<u8> = redis::cmd("GET").arg(KEY).query_async(&mut redis.clone()).await.unwrap();
        assert!(!value.is_empty());
    }
    HttpResponse::Ok().content_type("application/json").body(body.as_str().to_owned())
}
