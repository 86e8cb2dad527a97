/** The state of a device. */
public class Device {
  public long events; public double last = Double.NaN, sum;
  void add(double t) { events++; last = t; sum += t; }
  String json() { return "{\"events\":" + events + ",\"t_last\":" + last + ",\"t_mean\":" + sum / events + "}"; }
}
