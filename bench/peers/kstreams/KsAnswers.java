import com.fasterxml.jackson.core.*;
import com.fasterxml.jackson.core.io.JsonStringEncoder;
import io.vertx.core.Handler;
import io.vertx.core.buffer.Buffer;
import io.vertx.core.http.*;
import java.io.IOException;
import java.net.URLDecoder;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import static java.nio.charset.StandardCharsets.UTF_8;

/** What is answered: a key by GET, many by POST, a problem for what is not there. On the event loop: a get from memory waits for nobody. */
final class KsAnswers implements Handler<HttpServerRequest> {
  private static final String ROOT = "/v1/states/" + KsQueries.STATE, ONE = ROOT + "/", MANY = ROOT + ":batchGet";
  private static final byte[] HEAD = ("{\"state\":\"" + KsQueries.STATE + "\",\"key\":\"").getBytes(UTF_8);
  private static final byte[] VERSION = "\",\"version\":".getBytes(UTF_8), VALUE = ",\"value\":".getBytes(UTF_8);
  private static final CharSequence TYPE = HttpHeaders.CONTENT_TYPE;
  private static final CharSequence JSON = HttpHeaders.createOptimized("application/json"), PROBLEM = HttpHeaders.createOptimized("application/problem+json");
  private static final JsonFactory READER = new JsonFactory();
  private static final JsonStringEncoder QUOTED = JsonStringEncoder.getInstance();
  private final KsQueries states;

  KsAnswers(KsQueries states) { this.states = states; }

  @Override public void handle(HttpServerRequest request) {
    String path = request.path();
    if (request.method() == HttpMethod.GET && path.startsWith(ONE)) {
      String key = path.substring(ONE.length());
      answer(request, into -> one(into, key.indexOf('%') < 0 ? key : URLDecoder.decode(key.replace("+", "%2B"), UTF_8)));
    } else if (request.method() == HttpMethod.POST && path.equals(MANY)) {
      request.body().onSuccess(body -> answer(request, into -> many(into, body.getBytes())));
    } else {
      refuse(request, 404, "unknown_path");
    }
  }

  private interface Content { boolean write(Buffer into) throws IOException; }

  private void answer(HttpServerRequest request, Content content) {
    try {
      Buffer into = Buffer.buffer(1024);
      boolean found = content.write(into);
      request.response().setStatusCode(found ? 200 : 404).putHeader(TYPE, found ? JSON : PROBLEM).end(into);
    } catch (InvalidStateStoreException e) {
      request.response().putHeader(HttpHeaders.RETRY_AFTER, "1");
      refuse(request, 503, "catching_up");
    } catch (IOException | IllegalArgumentException e) {
      refuse(request, 400, "bad_request");
    }
  }

  private static void refuse(HttpServerRequest request, int status, String type) {
    request.response().setStatusCode(status).putHeader(TYPE, PROBLEM).end("{\"type\":\"" + type + "\",\"status\":" + status + "}");
  }

  /** The answer for a key, or its problem, as part of a batch or alone; false if it is a problem. */
  private boolean one(Buffer into, String key) throws IOException {
    byte[] value = states.get(key.getBytes(UTF_8)), name = QUOTED.quoteAsUTF8(key);
    if (value == null) {
      into.appendString("{\"type\":\"never_seen\",\"status\":404,\"key\":\"").appendBytes(name).appendString("\"}");
      return false;
    }
    into.appendBytes(HEAD).appendBytes(name).appendBytes(VERSION).appendBytes(version(value)).appendBytes(VALUE).appendBytes(value).appendByte((byte) '}');
    return true;
  }

  private boolean many(Buffer into, byte[] body) throws IOException {
    into.appendString("{\"answers\":[");
    try (JsonParser p = READER.createParser(body)) {
      if (p.nextToken() != JsonToken.START_OBJECT || !"keys".equals(p.nextFieldName()) || p.nextToken() != JsonToken.START_ARRAY) throw new IOException("no keys");
      for (int count = 0; p.nextToken() == JsonToken.VALUE_STRING; count++) {
        if (count > 0) into.appendByte((byte) ',');
        one(into, p.getText());
      }
      if (p.currentToken() != JsonToken.END_ARRAY) throw new IOException("a key is no string");
    }
    into.appendString("]}");
    return true;
  }

  /** The version that a record says on its outermost level. */
  private static byte[] version(byte[] value) throws IOException {
    try (JsonParser p = READER.createParser(value)) {
      p.nextToken();
      for (String name; (name = p.nextFieldName()) != null; p.skipChildren()) {
        if (p.nextToken() == JsonToken.VALUE_NUMBER_INT && name.equals("version")) return p.getText().getBytes(UTF_8);
      }
    }
    return "null".getBytes(UTF_8);
  }
}
