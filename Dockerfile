# The server alone: no shell, no libraries, no root. Everything that it writes is
# below /data, so its file system can be read-only (docker-compose.yml does that).
FROM golang:1.26.8 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
# The build sees no .git, so `writ version` prints the revision given here:
# docker build --build-arg REVISION=$(git rev-parse HEAD) .
ARG REVISION=unknown
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-X main.revision=$REVISION" -o /writ ./cmd/writ && mkdir /data

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build --chown=65532:65532 --chmod=700 /data /data
COPY --from=build /writ /writ
USER 65532:65532
# Prometheus and the balancer reach the admin address; publish it nowhere else.
ENV WRIT_DATA=/data WRIT_ADMIN_ADDR=:3821
VOLUME /data
EXPOSE 3820 3821
ENTRYPOINT ["/writ"]
CMD ["serve"]
