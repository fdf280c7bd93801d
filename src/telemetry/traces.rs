//! Traces for OpenTelemetry: a span for each request, for each operation of the store within it, and for what is asked of others.
//!
//! A span has the route's template, the operation or the host, and how it ended: no path, no query, no id and no person. A
//! request that comes with a `traceparent` (W3C Trace Context) goes on with that trace; nothing of it goes to providers.

use tracing::Span;

#[cfg(feature = "otel")]
pub use on::{Traces, start};

/// What hands over the spans: nothing, in this build.
#[cfg(not(feature = "otel"))]
pub enum Traces {}

/// A span for a request, as a part of the trace that its `traceparent` names.
#[must_use]
pub fn request(method: &'static str, traceparent: Option<&str>) -> Span {
    #[cfg(feature = "otel")]
    return on::request(method, traceparent);
    #[cfg(not(feature = "otel"))]
    {
        let _ = (method, traceparent);
        Span::none()
    }
}

/// How a request ended.
pub fn answered(span: &Span, route: &str, status: u16) {
    #[cfg(feature = "otel")]
    on::answered(span, route, status);
    #[cfg(not(feature = "otel"))]
    let _ = (span, route, status);
}

/// A span for an operation of the store.
#[must_use]
pub fn store(operation: &'static str) -> Span {
    #[cfg(feature = "otel")]
    return tracing::info_span!(target: "sidegate::traces", "store", otel.name = operation, otel.kind = "client", db.operation.name = operation);
    #[cfg(not(feature = "otel"))]
    {
        let _ = operation;
        Span::none()
    }
}

/// A span for something that is asked of others.
#[must_use]
pub fn asked(host: &str) -> Span {
    #[cfg(feature = "otel")]
    return tracing::info_span!(target: "sidegate::traces", "ask", otel.kind = "client", server.address = host);
    #[cfg(not(feature = "otel"))]
    {
        let _ = host;
        Span::none()
    }
}

#[cfg(feature = "otel")]
mod on {
    use std::collections::HashMap;

    use opentelemetry::propagation::TextMapPropagator as _;
    use opentelemetry::trace::{Status, TraceContextExt as _, TracerProvider as _};
    use opentelemetry_otlp::{ExporterBuildError, SpanExporter, WithExportConfig as _, WithHttpConfig as _};
    use opentelemetry_sdk::Resource;
    use opentelemetry_sdk::propagation::TraceContextPropagator;
    use opentelemetry_sdk::trace::{Sampler, SdkTracer, SdkTracerProvider};
    use tracing::Span;
    use tracing_opentelemetry::OpenTelemetrySpanExt as _;

    /// What hands over the spans. What is left is handed over when it is dropped.
    pub struct Traces(SdkTracerProvider);

    impl Drop for Traces {
        fn drop(&mut self) {
            if let Err(error) = self.0.shutdown() {
                tracing::warn!(%error, "the last traces were not handed over");
            }
        }
    }

    /// Hands spans over to the collector at `endpoint` (OTLP over HTTP, such as `http://127.0.0.1:4318/v1/traces`); of traces that
    /// begin here this part is taken.
    ///
    /// # Errors
    /// [`ExporterBuildError`] for an endpoint that is none.
    pub fn start(
        endpoint: &str,
        ratio: f64,
        client: impl opentelemetry_http::HttpClient + 'static,
    ) -> Result<(Traces, SdkTracer), ExporterBuildError> {
        let exporter = SpanExporter::builder().with_http().with_http_client(client).with_endpoint(endpoint);
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(exporter.build()?)
            .with_sampler(Sampler::ParentBased(Box::new(Sampler::TraceIdRatioBased(ratio))))
            .with_resource(Resource::builder_empty().with_service_name("sidegate").build())
            .build();
        let tracer = provider.tracer("sidegate");
        Ok((Traces(provider), tracer))
    }

    pub(super) fn request(method: &'static str, traceparent: Option<&str>) -> Span {
        let span = tracing::info_span!(
            target: "sidegate::traces",
            "request",
            otel.kind = "server",
            http.request.method = method,
            http.route = tracing::field::Empty,
            http.response.status_code = tracing::field::Empty,
        );
        if let Some(traceparent) = traceparent {
            let carrier = HashMap::from([("traceparent".to_owned(), traceparent.to_owned())]);
            // What is none is passed over: the trace begins here.
            let _ = span.set_parent(TraceContextPropagator::new().extract(&carrier));
        }
        span
    }

    pub(super) fn answered(span: &Span, route: &str, status: u16) {
        span.record("http.route", route);
        span.record("http.response.status_code", status);
        // It has begun by now, so that its name is changed where it is kept.
        let context = span.context();
        let kept = context.span();
        kept.update_name(route.to_owned());
        if status >= 500 {
            kept.set_status(Status::error(""));
        }
    }
}
