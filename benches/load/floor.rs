//! The floor: a bare actix handler that answers the same bytes, in a process of its own.

use actix_web::{App, HttpResponse, HttpServer, web};

/// The environment variable that makes this program the floor; it holds the body to answer.
pub(crate) const VARIABLE: &str = "SIDEGATE_LOAD_FLOOR";

/// Serves until the process is killed. The first line of output is the address.
pub(crate) fn serve(body: String) {
    let body = web::Data::new(body);
    actix_web::rt::System::new()
        .block_on(async {
            let server =
                HttpServer::new(move || App::new().app_data(body.clone()).route("/", web::get().to(answer)));
            let server = server.disable_signals().bind(("127.0.0.1", 0))?;
            println!("{}", server.addrs()[0]);
            server.run().await
        })
        .unwrap();
}

async fn answer(body: web::Data<String>) -> HttpResponse {
    HttpResponse::Ok().content_type("application/json").body(body.as_str().to_owned())
}
