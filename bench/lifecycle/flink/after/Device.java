/** The same with `events` renamed, without the sum, and with the largest temperature. */
public class Device {
  public long readings; public double last = Double.NaN; public Double max;
  void add(double t) { readings++; last = t; max = max == null ? t : Math.max(max, t); }
  String json() { return "{\"readings\":" + readings + ",\"t_last\":" + last + ",\"t_max\":" + max + "}"; }
}
