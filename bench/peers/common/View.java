import com.fasterxml.jackson.core.*;
import com.fasterxml.jackson.core.util.ByteArrayBuilder;
import java.io.IOException;

/** An event as far as counting needs it: its key and its time, in milliseconds; and a count as it is published. Not for several threads. */
final class View {
  static final String IN = "events", OUT = "snapshots";
  String key; long ts;
  private final char[] iso = new char[Iso.LEN];
  private final ByteArrayBuilder out = new ByteArrayBuilder(128);

  /** false: not usable (bad JSON, or no key or time) */
  boolean parse(byte[] v) {
    key = null; ts = Long.MIN_VALUE;
    if (v == null) return false;
    try (JsonParser p = Rec.JF.createParser(v)) {
      if (p.nextToken() != JsonToken.START_OBJECT) return false;
      for (String f; (f = p.nextFieldName()) != null; ) {
        p.nextToken();
        switch (f) {
          case "device_id": key = p.getText(); break;
          case "ts": ts = Math.floorDiv(Iso.parse(p.getTextCharacters(), p.getTextOffset(), p.getTextLength()), 1000); break;
          default: p.skipChildren();
        }
      }
    } catch (IOException | RuntimeException e) { return false; }
    return key != null && ts != Long.MIN_VALUE;
  }

  byte[] count(String key, long start, long count) throws IOException {
    out.reset();
    try (JsonGenerator j = Rec.JF.createGenerator(out, JsonEncoding.UTF8)) {
      j.writeStartObject(); j.writeStringField("key", key);
      Iso.format(start * 1000, iso); j.writeFieldName("window_start"); j.writeString(iso, 0, Iso.LEN);
      j.writeNumberField("count", count); j.writeEndObject();
    }
    return out.toByteArray();
  }
}
