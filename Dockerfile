# syntax=docker/dockerfile:1
# About 35 MB: 24 MB of base and 10 MB of program.
FROM rust:1.95.0-bookworm AS build
WORKDIR /src
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    CARGO_PROFILE_RELEASE_STRIP=debuginfo cargo build --locked --release -p kthena-router \
    && cp target/release/kthena-router /kthena-router

# glibc, libgcc and CA certificates; no shell, no package manager.
FROM gcr.io/distroless/cc-debian12:nonroot
COPY --from=build /kthena-router /usr/local/bin/kthena-router
USER 65532:65532
EXPOSE 8080 8443 9090
ENTRYPOINT ["/usr/local/bin/kthena-router"]
